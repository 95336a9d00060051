package engine

import (
	"bytes"
	"slices"
	"strings"
)

// connectionCommands are about the connection that sends them.
var connectionCommands = []Command{
	{Name: "ping", Arity: -1, Flags: Fast, Cats: CatConnection, run: pingCommand},
	{Name: "echo", Arity: 2, Flags: Loading | Stale | Fast, Cats: CatConnection, run: func(c *call) { c.out.Bulk(c.args[1]) }},
	{Name: "hello", Arity: -1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy, Cats: CatConnection, run: helloCommand},
	{Name: "auth", Arity: -2, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy, Cats: CatConnection, run: authCommand},
	{Name: "quit", Arity: -1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy, Cats: CatConnection, run: quitCommand},
	{Name: "reset", Arity: 1, Flags: NoScript | Loading | Stale | Fast | NoAuth | AllowBusy, Cats: CatConnection, run: resetCommand},
	{Name: "select", Arity: 2, Flags: Loading | Stale | Fast, Cats: CatConnection, run: selectCommand},
	{Name: "time", Arity: 1, Flags: Loading | Stale | Fast, run: timeCommand},
}

// Version is the version of Redis that the engine's replies follow.
const Version = "8.0.2"

const (
	errNoPassword = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	errHelloAuth  = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	errClientName = "ERR Client names cannot contain spaces, newlines or special characters."
)

func pingCommand(c *call) {
	switch {
	case len(c.args) > 2:
		c.fail(wrongArity(c.cmd.Name))
	case c.s.Subscribed() && c.out.Proto != 3:
		c.out.Array(2)
		c.out.BulkString("pong")
		c.out.Bulk(bytes.Join(c.args[1:], nil)) // empty without a message
	case len(c.args) == 2:
		c.out.Bulk(c.args[1])
	default:
		c.out.Simple("PONG")
	}
}

func timeCommand(c *call) {
	c.out.Array(2)
	c.out.BulkInt(c.e.now / 1e6)
	c.out.BulkInt(c.e.now % 1e6)
}

func quitCommand(c *call) {
	c.ok()
	c.outcome = Close
}

func selectCommand(c *call) {
	id := c.smallInt(1)
	switch {
	case id != 0 && c.e.options.Cluster != nil:
		c.fail("ERR SELECT is not allowed in cluster mode")
	case id < 0 || id >= Databases:
		c.fail(errInvalidDB)
	case !c.failed:
		c.s.db = int(id)
		c.ok()
	}
}

func authCommand(c *call) {
	user, password := "default", string(c.args[len(c.args)-1])
	switch {
	case len(c.args) > 3:
		c.fail(errSyntax)
	case len(c.args) == 3:
		user = string(c.args[1])
	case c.e.settings.password == "":
		c.fail(errNoPassword)
	}
	switch {
	case c.failed:
	case c.login(user, password):
		c.ok()
	default:
		c.fail(errWrongPass)
	}
}

// login authenticates the session if the password is right; without a configured password, any is.
func (c *call) login(user, password string) bool {
	want, known := c.e.settings.users[user]
	if user == "default" {
		want, known = c.e.settings.password, c.e.settings.password != "" || !c.e.settings.locked()
	}
	if !known || want != "" && password != want {
		return false
	}
	c.s.authenticated = true
	return true
}

func helloCommand(c *call) {
	proto := int64(c.out.Proto)
	if len(c.args) > 1 {
		proto = c.intOr(1, "ERR Protocol version is not an integer or out of range")
		if proto < 2 || proto > 3 {
			c.fail("NOPROTO unsupported protocol version")
		}
	}
	var user, password, name []byte
	for o := c.options(2); o.more(); {
		switch {
		case o.word("AUTH", 2):
			user, password = c.args[o.next()], c.args[o.next()]
		case o.word("SETNAME", 1):
			if name = c.args[o.next()]; !validName(name) {
				c.fail(errClientName)
			}
		default:
			c.failf("ERR Syntax error in HELLO option '%s'", c.args[o.at])
		}
	}
	switch {
	case c.failed:
		return
	case user != nil && !c.login(string(user), string(password)):
		c.fail(errWrongPass)
		return
	case c.s.Anonymous():
		c.fail(errHelloAuth)
		return
	}
	if name != nil {
		c.s.name = string(name)
	}
	c.out.Proto = int(proto)
	c.greet()
}

// greet replies with what HELLO says about the server.
func (c *call) greet() {
	c.out.Map(7)
	c.pair("server", "redis")
	c.pair("version", Version)
	c.out.BulkString("proto")
	c.number(c.out.Proto)
	c.out.BulkString("id")
	c.out.Int(c.s.id)
	c.pair("mode", c.e.mode())
	c.pair("role", "master")
	c.out.BulkString("modules")
	c.out.Array(0)
}

// pair replies with a name and a string.
func (c *call) pair(name, text string) {
	c.out.BulkString(name)
	c.out.BulkString(text)
}

// validName reports whether name can name a connection: it must not contain anything that would break a line of CLIENT LIST.
func validName(name []byte) bool {
	return !slices.ContainsFunc(name, func(b byte) bool { return b < '!' || b > '~' })
}

func resetCommand(c *call) {
	s := c.s
	c.e.discard(s)
	c.e.untrack(s)
	c.e.unsubscribeAll(s)
	s.db, s.name, s.reply, s.noTouch, s.noEvict = 0, "", replyOn, false, false
	s.authenticated = !c.e.settings.locked()
	c.out.Proto = 2
	c.out.Simple("RESET")
}

// smallInt reads argument i as a 32-bit integer, where Redis has a C int.
func (c *call) smallInt(i int) int64 {
	n := c.int(i)
	if n != int64(int32(n)) {
		c.fail("ERR value is out of range, value must between -2147483648 and 2147483647")
	}
	return n
}

// help replies with the lines of a HELP subcommand.
func (c *call) help(lines string) {
	all := strings.Split(strings.TrimSpace(lines), "\n")
	name, _, _ := strings.Cut(c.cmd.Name, "|")
	c.out.Array(len(all) + 3)
	c.out.Simple(strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, line := range all {
		c.out.Simple(line)
	}
	c.out.Simple("HELP")
	c.out.Simple("    Print this help.")
}
