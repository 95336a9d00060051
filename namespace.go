package mayfly

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/jitter"
)

// Namespace describes one kind of value with keys of type K. Fill it in and pass it to a constructor, which checks it with
// [Namespace.Validate] and does no I/O. Redis, TTL, and Prefix or Name are required; the zero value of every other field
// is a default that works.
type Namespace[K comparable, V any] struct {
	// Name appears in Events, metrics and errors. Only letters, digits, _, - and ., so that it can be a label. Empty follows from Prefix:
	// "users" from "users:", "cache.user" from "cache:user:".
	Name string

	// Redis is where the values live: a single server, a cluster, a Sentinel group. Any client will do; its hooks, such as tracing, see the
	// commands if ContextTimeoutEnabled is set in its options, as [CacheClient] does.
	Redis redis.UniversalClient

	// Prefix begins every key: the key in Redis is Prefix followed by the key's text, and nothing else. End it with a
	// separator, as in "cache:user:", so that the keys of another prefix never look like its own; one that ends with a letter or a
	// digit is reported as a [KindWarning]. Two namespaces with the same Prefix share their values. "mayfly:" is reserved for locks and leases.
	// Empty follows from Name: "users:" from "users".
	Prefix string

	// Key returns the text of a key; different keys must have different texts. Nil works for strings, integers and types with
	// MarshalText. Other types, such as structs, need it.
	Key func(K) string

	// TTL is how long a value lives, from a millisecond to a hundred years; fractions of a millisecond are dropped. It has no default: only you know for how long your data may
	// be out of date.
	TTL time.Duration

	// MaxTTL is the longest TTL that a single value may be given, by sliding's CreateFor, cacheaside's SetFor and its loaders (Loaded.TTL): a
	// session that is remembered for a month, say, among others that end after half an hour. Zero is TTL.
	MaxTTL time.Duration

	// Jitter changes each TTL by a random share, so that values stored together do not expire together. Zero changes nothing;
	// [jitter.Default] is plus or minus 10 %.
	Jitter jitter.Spread

	// Codec turns values into bytes. Nil is [DefaultCodec]. One that has a method Validate() error is asked whether it can carry
	// values of type V, as [JSON] is.
	Codec Codec[V]

	// Local keeps copies of values in this process, from [OpenLocal]. Nil keeps none.
	Local *Local

	// Clone copies a value that several callers get: from the local tier, or from a load that they have all waited for. Nil returns the same
	// value to all of them, who must then not modify what it points to.
	Clone func(V) V

	// Cost tells how many bytes a value takes in the local tier. Nil counts the bytes it had in Redis.
	Cost func(V) int

	// Observer sees what happens. Nil costs nothing.
	Observer Observer

	// Plain stores the codec's bytes and nothing else, for keys that programs in other languages read and write too.
	// What needs room for a header (stale values, early refresh by cost, remembered misses) is then refused by the
	// constructor that is asked for it. Turn it on or off together with a new Prefix: processes with and without it do not
	// see each other's leases, so a Delete by one does not void a load of the other.
	Plain bool
}

// Validate returns an error that names every field that cannot be used, its value, and what to do; nil if all can.
// Constructors call it, so there is rarely a need to.
func (n Namespace[K, V]) Validate() error {
	c := check.In("Namespace.")
	given := n.Name
	n.Name, n.Prefix = keyform.Names(n.Name, n.Prefix)
	switch unfit := strings.ContainsFunc(n.Name, notInNames); {
	case n.Name == "" && n.Prefix == "":
		c.Refuse(true, "Prefix and Name are empty: keys, metrics and errors need one of them, such as the Prefix \"cache:user:\"")
	case n.Name == "" || unfit && given == "":
		c.Refuse(true, "Name is empty, and no name follows from Prefix %q, which must hold only letters, digits, '_', '-', '.' and ':': set one, such as \"users\"", n.Prefix)
	case unfit:
		c.Refuse(true, "Name must hold only letters, digits, '_', '-' and '.', got %q", n.Name)
	}
	c.Add(check.Client("Namespace.Redis", n.Redis))
	switch {
	case n.Prefix == "": // that was said
	case keyform.Collides(n.Prefix):
		c.Refuse(true, "Prefix %q leads into %q, where mayfly keeps its locks and leases: choose another", n.Prefix, keyform.Reserved)
	case len(n.Prefix) >= keyform.MaxLen:
		c.Refuse(true, "Prefix has %d bytes: Redis takes keys of %d, prefix included", len(n.Prefix), keyform.MaxLen)
	}
	_, err := keyform.Of(n.Key)
	c.Refuse(err != nil, "Key: %w", err)
	c.Add(check.TTL("Namespace.TTL", n.TTL))
	if n.MaxTTL != 0 {
		c.Add(check.TTL("Namespace.MaxTTL", n.MaxTTL))
		c.Refuse(n.MaxTTL < n.TTL, "MaxTTL %v is shorter than TTL %v: it is the longest that a value may be given, make it longer or leave it out", n.MaxTTL, n.TTL)
	}
	if err := n.Jitter.Validate(); err != nil {
		c.Wrap(err)
	} else if n.TTL <= check.MaxTTL && n.MaxTTL <= check.MaxTTL {
		longest := n.Jitter.At(max(n.TTL, n.MaxTTL), 1) // beyond the longest, there is room for a stale window
		c.Refuse(longest > check.MaxTTL+check.MaxTTL/2, "Jitter can make the TTL %v: set its Ceiling", longest)
	}
	codec := n.Codec
	if codec == nil {
		codec = DefaultCodec[V]()
	}
	if codec, ok := codec.(interface{ Validate() error }); ok {
		err := codec.Validate()
		c.Refuse(err != nil, "Codec: %w", err)
	}
	if n.Local != nil {
		c.Add(n.Local.serves(n.Redis, n.Prefix))
	}
	return c.Err()
}

// FullKey returns the name under which Redis holds key's value, to find it with redis-cli or to delete it from a
// program without mayfly.
func (n Namespace[K, V]) FullKey(key K) (string, error) {
	form, err := keyform.Of(n.Key)
	if err != nil {
		return "", fmt.Errorf("mayfly: Namespace.Key: %w", err)
	}
	n.Name, n.Prefix = keyform.Names(n.Name, n.Prefix)
	full, err := form([]byte(n.Prefix), key)
	if err != nil {
		return "", fmt.Errorf("mayfly: namespace %q: %w", n.Name, err)
	}
	return string(full), nil
}

func notInNames(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", r)
}
