package engine

import (
	"bytes"
	"maps"
	"slices"

	"github.com/mayflycache/mayfly/internal/glob"
)

// commandCommands are COMMAND and its subcommands.
var commandCommands = []Command{{Name: "command", Arity: -1, Flags: Loading | Stale, Cats: CatConnection, run: commandCommand, Sub: []Command{
	{Name: "command|count", Arity: 2, Flags: Loading | Stale, Cats: CatConnection, run: func(c *call) { c.number(len(commands)) }},
	{Name: "command|info", Arity: -2, Flags: Loading | Stale, Cats: CatConnection, run: commandInfoCommand},
	{Name: "command|list", Arity: -2, Flags: Loading | Stale, Cats: CatConnection, run: commandListCommand},
	{Name: "command|getkeys", Arity: -3, Flags: Loading | Stale, Cats: CatConnection, run: commandGetkeysCommand},
	{Name: "command|help", Arity: 2, Flags: Loading | Stale, Cats: CatConnection, run: func(c *call) {
		c.help(`
(no subcommand)
    Return details about all commands.
COUNT
    Return the total number of commands.
LIST [FILTERBY (ACLCAT <cat>|PATTERN <pattern>|MODULE <name>)]
    Return a list of all commands.
INFO [<command-name> ...]
    Return details about the given commands.
GETKEYS <full-command>
    Return the keys from a full command.`)
	}},
}}}

// The names of the flags and of the categories, each in the order of its bits. A flag without a name is not printed.
var (
	flagNames = []string{
		"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "blocking", "loading", "stale", "skip_monitor", "skip_slowlog", "fast",
		"no_auth", "", "movablekeys", "allow_busy", "no_multi",
	}
	categoryNames = []string{
		"@keyspace", "@string", "@hash", "@list", "@set", "@sortedset", "@bitmap", "@hyperloglog", "@connection", "@transaction", "@scripting",
		"@dangerous", "@admin",
	}
)

// flagList returns the names of the flags of c.
func (c *Command) flagList() (names []string) {
	for bit, name := range flagNames {
		if c.Flags>>bit&1 == 1 && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// categories returns the names of the ACL categories of c: the listed ones and those its flags imply.
func (c *Command) categories() (names []string) {
	add := func(is bool, name string) {
		if is && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(c.Flags&Write != 0, "@write")
	add(c.Flags&ReadOnly != 0 && c.Cats&CatScripting == 0, "@read")
	add(c.Flags&Admin != 0, "@admin")
	add(c.Flags&PubSub != 0, "@pubsub")
	add(c.Flags&Fast != 0, "@fast")
	add(c.Flags&Fast == 0, "@slow")
	add(c.Flags&Blocking != 0, "@blocking")
	add(c.Flags&Admin != 0, "@dangerous")
	for bit, name := range categoryNames {
		add(c.Cats>>bit&1 == 1, name)
	}
	return names
}

// describe writes what COMMAND INFO says about cmd: name, arity, flags, first and last key and step, categories, empty tips and key
// specifications, and the subcommands.
func (c *call) describe(cmd *Command) {
	c.out.Array(10)
	c.out.BulkString(cmd.Name)
	c.number(cmd.Arity)
	c.names(cmd.flagList())
	c.number(cmd.Keys.First)
	c.number(cmd.Keys.Last)
	c.number(cmd.Keys.Step)
	c.names(cmd.categories())
	c.out.Array(0)
	c.out.Array(0)
	c.out.Array(len(cmd.Sub))
	for i := range cmd.Sub {
		c.describe(&cmd.Sub[i])
	}
}

// names writes a set of simple strings.
func (c *call) names(names []string) {
	c.out.Set(len(names))
	for _, name := range names {
		c.out.Simple(name)
	}
}

func commandCommand(c *call) {
	c.out.Array(len(commands))
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		c.describe(commands[name])
	}
}

func commandInfoCommand(c *call) {
	if len(c.args) == 2 {
		commandCommand(c)
		return
	}
	c.out.Array(len(c.args) - 2)
	for _, name := range c.args[2:] {
		words := bytes.SplitN(name, []byte("|"), 2)
		if cmd, unknownSub := lookup(words); cmd != nil && !unknownSub {
			c.describe(cmd)
		} else {
			c.out.NullArray()
		}
	}
}

func commandListCommand(c *call) {
	keep := func(*Command) bool { return true }
	switch {
	case len(c.args) == 2:
	case len(c.args) == 5 && c.is(2, "FILTERBY") && c.is(3, "MODULE"):
		keep = func(*Command) bool { return false }
	case len(c.args) == 5 && c.is(2, "FILTERBY") && c.is(3, "ACLCAT"):
		category := "@" + string(lower(make([]byte, 0, 32), c.args[4]))
		keep = func(cmd *Command) bool { return slices.Contains(cmd.categories(), category) }
	case len(c.args) == 5 && c.is(2, "FILTERBY") && c.is(3, "PATTERN"):
		pattern := glob.Compile(bytes.ToLower(c.args[4]))
		keep = func(cmd *Command) bool { return pattern.Match([]byte(cmd.Name)) }
	default:
		c.fail(errSyntax)
		return
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		for _, cmd := range append([]Command{*commands[name]}, commands[name].Sub...) {
			if keep(&cmd) {
				names = append(names, cmd.Name)
			}
		}
	}
	c.texts(names)
}

func commandGetkeysCommand(c *call) {
	args := c.args[2:]
	cmd, unknownSub := lookup(args)
	switch {
	case cmd == nil || unknownSub:
		c.fail("ERR Invalid command specified")
		return
	case cmd.Keys.Find == nil && cmd.Keys.First == 0:
		c.fail("ERR The command has no key arguments")
		return
	case !cmd.takes(len(args)):
		c.fail("ERR Invalid number of arguments specified for command")
		return
	}
	at := cmd.positions(args)
	if at == nil && cmd.Keys.Find != nil {
		c.fail("ERR Invalid arguments specified for command")
		return
	}
	c.out.Array(len(at))
	for _, i := range at {
		c.out.Bulk(args[i])
	}
}
