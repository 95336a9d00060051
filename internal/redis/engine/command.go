package engine

import "strings"

// Command is one row of the command table, or one subcommand.
type Command struct {
	Name  string // lower case; a subcommand's full name, as "client|id"
	Arity int    // number of arguments, the name included; negative: at least that many
	Flags Flag
	Cats  Category // those that Flags do not imply
	Keys  Keys
	Sub   []Command // of a container; without a run of its own it cannot be called bare

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
	MayReplicate // not printed: it reads, but must be replicated
	MovableKeys
	AllowBusy
	NoMulti // refused in a transaction
)

// Category is an ACL category.
type Category uint32

// The categories that are listed in the table, not implied by a flag.
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
	CatAdmin // for a command not marked Admin
)

// Keys say which arguments of a command are keys. Last may count from the end, -1 being the last argument. Find, if set, returns the
// positions instead, and nil for invalid arguments.
type Keys struct {
	First, Last, Step int
	Find              func(args [][]byte) []int
}

// oneKey is the first argument; allKeys is every argument.
var (
	oneKey  = Keys{First: 1, Last: 1, Step: 1}
	twoKeys = Keys{First: 1, Last: 2, Step: 1}
	allKeys = Keys{First: 1, Last: -1, Step: 1}
)

// tables are the command families, one file each.
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

// lookup finds the command that args call. If only its container was found, because the second word is unknown, unknownSub is true.
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

// lower returns b in lower case, in the memory of dst. What is too long for it becomes a zero byte, which names no command.
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

// positions returns the indexes of the keys in args.
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

// takes reports whether the command accepts n arguments, the name included.
func (c *Command) takes(n int) bool {
	return n == c.Arity || c.Arity < 0 && n >= -c.Arity
}
