// Package values holds the data structures behind the engine's keys: what lists, hashes, sets and sorted sets are and cost. It knows nothing
// of commands, replies, keys or clocks. A time, where needed, is an argument in unix milliseconds.
//
// A string is a plain []byte of its key (string.go has its operations); everything else is a [Value]. Each structure has Redis's small and
// large form, switches between them at the same [Limits], reports the form's name as its Encoding, and lists its elements in Redis's order
// where that is defined: insertion order while small, ascending for a set of integers, by score for a sorted set.
//
// Elements passed in are copied; elements returned belong to the structure and are valid until its next change.
package values

// Kind is the type of a key's value.
type Kind uint8

// The kinds, in the order of Redis's own numbers. Missing is the kind of a key that does not exist.
const (
	Missing Kind = iota
	String
	List
	Set
	ZSet
	Hash
)

// String returns the kind's name as TYPE replies it.
func (k Kind) String() string {
	return [...]string{"none", "string", "list", "set", "zset", "hash"}[k]
}

// Value is what a key holds when it does not hold a string.
type Value interface {
	Kind() Kind
	Encoding() string // as OBJECT ENCODING replies it
	Len() int         // number of elements; a key with an empty value is removed
	Clone() Value     // a copy that shares nothing
	Size() int        // bytes held, roughly
}

// Limits are the sizes at which the small form of a structure becomes the large one, named as in Redis's configuration.
type Limits struct {
	HashMaxListpackEntries int // 512
	HashMaxListpackValue   int // 64
	ListMaxListpackSize    int // -2: 8 KiB; a positive number counts elements
	SetMaxIntsetEntries    int // 512
	SetMaxListpackEntries  int // 128
	SetMaxListpackValue    int // 64
	ZSetMaxListpackEntries int // 128
	ZSetMaxListpackValue   int // 64
}

// DefaultLimits are Redis 8.0's.
var DefaultLimits = Limits{
	HashMaxListpackEntries: 512,
	HashMaxListpackValue:   64,
	ListMaxListpackSize:    -2,
	SetMaxIntsetEntries:    512,
	SetMaxListpackEntries:  128,
	SetMaxListpackValue:    64,
	ZSetMaxListpackEntries: 128,
	ZSetMaxListpackValue:   64,
}
