package engine

import "strings"

// Command is one row of the command table, or one subcommand.
type Command struct {
	Name  string // lower case; of a subcommand the whole of it, as "client|id"
	Arity int    // arguments with the name; negative: at least so many
	Flags Flag
	Cats  Category // those that do not follow from Flags
	Keys  Keys
	Sub   []Command // of a container; it has no run of its own unless it can be called bare

	run  func(*call)
	subs map[string]*Command // by the second word
}

// Flag is a property of a command, as COMMAND INFO lists it.
type Flag uint32

// The flags, in the order in which COMMAND INFO prints them.
const (
	Write Flag = 1 << iota
	ReadOnly
	DenyOOM
	Admin
	PubSub
	NoScript
	Blocking
	Loading
	Stale
	SkipMonitor
	SkipSlowlog
	Fast
	NoAuth
	MayReplicate // not printed: it reads, and others must know
	MovableKeys
	AllowBusy
	NoMulti // is refused in a transaction
)

// Category is an ACL category.
type Category uint32

// The categories that are given, not implied by a flag.
const (
	CatKeyspace Category = 1 << iota
	CatString
	CatHash
	CatList
	CatSet
	CatSortedSet
	CatBitmap
	CatHyperLogLog
	CatConnection
	CatTransaction
	CatScripting
	CatDangerous
	CatAdmin // of a command that is not marked Admin
)

// Keys say which arguments of a command are keys. Last may count from the end, -1 being the last argument. Find, if given,
// returns the positions instead, and nil for arguments that make no sense.
type Keys struct {
	First, Last, Step int
	Find              func(args [][]byte) []int
}

// oneKey is the first argument; allKeys every one.
var (
	oneKey  = Keys{First: 1, Last: 1, Step: 1}
	twoKeys = Keys{First: 1, Last: 2, Step: 1}
	allKeys = Keys{First: 1, Last: -1, Step: 1}
)

// tables are the families, one file each.
var tables = [][]Command{}

// commands is the table by name, built once.
var commands map[string]*Command

func init() {
	tables = [][]Command{
		connectionCommands, keyCommands, expiryCommands, scanCommands, inspectCommands, stringCommands, rangeCommands, counterCommands, bitCommands, databaseCommands, debugCommands, transactionCommands, dumpCommands,
		hashCommands, fieldCommands, listCommands, setCommands, setAlgebraCommands, sortedSetCommands, zrangeCommands, zpopCommands, zstoreCommands, sortCommands, hyperLogLogCommands,
		scriptCommands, pubsubCommands, clientCommands, configCommands, logCommands, feedCommands, upstreamCommands, replicaCommands, infoCommands, commandCommands, clusterCommands,
	}
	commands = make(map[string]*Command)
	for _, family := range tables {
		for i := range family {
			c := &family[i]
			commands[c.Name] = c
			if c.Sub == nil {
				continue
			}
			c.subs = make(map[string]*Command, len(c.Sub))
			for j := range c.Sub {
				_, word, _ := strings.Cut(c.Sub[j].Name, "|")
				c.subs[word] = &c.Sub[j]
			}
		}
	}
}

// lookup finds the command that args call; sub is true when only its container was found, which was given a second word that it does not know.
func lookup(args [][]byte) (cmd *Command, unknownSub bool) {
	var buf [32]byte
	cmd = commands[string(lower(buf[:0], args[0]))]
	if cmd == nil || cmd.subs == nil || len(args) < 2 {
		return cmd, false
	}
	sub := cmd.subs[string(lower(buf[:0], args[1]))]
	if sub == nil {
		return cmd, true
	}
	return sub, false
}

// lower appends b in lower case to dst, but no more than dst has room for and one byte: no name is that long.
func lower(dst, b []byte) []byte {
	for _, c := range b {
		if len(dst) == cap(dst) {
			return append(dst[:0], 0)
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// positions returns where in args the keys are.
func (c *Command) positions(args [][]byte) []int {
	if c.Keys.Find != nil {
		return c.Keys.Find(args)
	}
	if c.Keys.First == 0 {
		return nil
	}
	last := c.Keys.Last
	if last < 0 {
		last += len(args)
	}
	var at []int
	for i := c.Keys.First; i <= last && i < len(args); i += c.Keys.Step {
		at = append(at, i)
	}
	return at
}

// takes reports whether n arguments, the name included, are a number that the command takes.
func (c *Command) takes(n int) bool {
	return n == c.Arity || c.Arity < 0 && n >= -c.Arity
}
