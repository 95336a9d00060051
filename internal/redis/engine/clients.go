package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// clientFlags are the flags of nearly all subcommands of CLIENT; those about other connections are Admin too.
const clientFlags = NoScript | Loading | Stale

// clientCommands are CLIENT and its subcommands.
var clientCommands = []Command{{Name: "client", Arity: -2, Sub: []Command{
	{Name: "client|id", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: func(c *call) { c.out.Int(c.s.id) }},
	{Name: "client|info", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: func(c *call) { c.out.Verbatim("txt", c.e.describe(c.s)) }},
	{Name: "client|list", Arity: -2, Flags: clientFlags | Admin, Cats: CatConnection, run: clientListCommand},
	{Name: "client|setname", Arity: 3, Flags: clientFlags, Cats: CatConnection, run: clientSetnameCommand},
	{Name: "client|getname", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: func(c *call) { c.bulk([]byte(c.s.name), c.s.name != "") }},
	{Name: "client|setinfo", Arity: 4, Flags: clientFlags, Cats: CatConnection, run: clientSetinfoCommand},
	{Name: "client|kill", Arity: -3, Flags: clientFlags | Admin, Cats: CatConnection, run: clientKillCommand},
	{Name: "client|unblock", Arity: -3, Flags: clientFlags | Admin, Cats: CatConnection, run: clientUnblockCommand},
	{Name: "client|reply", Arity: 3, Flags: clientFlags, Cats: CatConnection, run: clientReplyCommand},
	{Name: "client|pause", Arity: -3, Flags: clientFlags | Admin, Cats: CatConnection, run: clientPauseCommand},
	{Name: "client|unpause", Arity: 2, Flags: clientFlags | Admin, Cats: CatConnection, run: clientUnpauseCommand},
	{Name: "client|no-evict", Arity: 3, Flags: clientFlags | Admin, Cats: CatConnection, run: func(c *call) { c.onOff(&c.s.noEvict) }},
	{Name: "client|no-touch", Arity: 3, Flags: clientFlags, Cats: CatConnection, run: func(c *call) { c.onOff(&c.s.noTouch) }},
	{Name: "client|tracking", Arity: -3, Flags: clientFlags, Cats: CatConnection, run: clientTrackingCommand},
	{Name: "client|caching", Arity: 3, Flags: clientFlags, Cats: CatConnection, run: clientCachingCommand},
	{Name: "client|trackinginfo", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: clientTrackinginfoCommand},
	{Name: "client|getredir", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: func(c *call) { c.out.Int(c.s.redirection()) }},
	{Name: "client|help", Arity: 2, Flags: Loading | Stale, Cats: CatConnection, run: func(c *call) { c.help(clientHelp) }},
}}}

const clientHelp = `
CACHING (YES|NO)
    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.
GETREDIR
    Return the client ID we are redirecting to when tracking is enabled.
GETNAME
    Return the name of the current connection.
ID
    Return the ID of the current connection.
INFO
    Return information about the current client connection.
KILL <ip:port>
    Kill connection made from <ip:port>.
KILL <option> <value> [<option> <value> [...]]
    Kill connections by ADDR, LADDR, TYPE, USER, SKIPME, ID or MAXAGE.
LIST [TYPE <type> | ID <id> ...]
    Return information about client connections.
PAUSE <timeout> [WRITE|ALL]
    Suspend all, or just write, clients for <timeout> milliseconds.
UNPAUSE
    Stop the current client pause, resuming traffic.
REPLY (ON|OFF|SKIP)
    Control the replies sent to the current connection.
SETNAME <name>
    Assign the name <name> to the current connection.
SETINFO <option> <value>
    Set LIB-NAME or LIB-VER of the current connection.
UNBLOCK <clientid> [TIMEOUT|ERROR]
    Unblock the specified blocked client.
TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]
         [OPTIN] [OPTOUT] [NOLOOP]
    Control server assisted client side caching.
TRACKINGINFO
    Report tracking status for the current connection.
NO-EVICT (ON|OFF)
    Protect current client connection from eviction.
NO-TOUCH (ON|OFF)
    Will not touch LRU/LFU stats when this mode is on.
`

func clientSetnameCommand(c *call) {
	if !validName(c.args[2]) {
		c.fail(errClientName)
		return
	}
	c.s.name = string(c.args[2])
	c.ok()
}

func clientSetinfoCommand(c *call) {
	var field *string
	switch {
	case c.is(2, "LIB-NAME"):
		field = &c.s.library
	case c.is(2, "LIB-VER"):
		field = &c.s.libraryVersion
	default:
		c.failf("ERR Unrecognized option '%s'", c.args[2])
		return
	}
	if !validName(c.args[3]) {
		c.failf("ERR %s cannot contain spaces, newlines or special characters.", c.args[2])
		return
	}
	*field = string(c.args[3])
	c.ok()
}

// onOff sets flag as the third argument says.
func (c *call) onOff(flag *bool) {
	switch {
	case c.is(2, "ON"):
		*flag = true
	case c.is(2, "OFF"):
		*flag = false
	default:
		c.fail(errSyntax)
		return
	}
	c.ok()
}

func clientReplyCommand(c *call) {
	switch {
	case c.is(2, "ON"):
		c.s.reply = replyOn
		c.ok()
	case c.is(2, "OFF"):
		c.s.reply = replyOff
	case c.is(2, "SKIP"):
		if c.s.reply != replyOff {
			c.s.reply = replySkip
		}
	default:
		c.fail(errSyntax)
	}
}

func clientUnblockCommand(c *call) {
	text := ""
	switch {
	case len(c.args) > 4:
		c.fail(errSyntax)
	case len(c.args) == 3, c.is(3, "TIMEOUT"):
	case c.is(3, "ERROR"):
		text = errUnblocked
	default:
		c.fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	}
	target := c.e.sessions[c.int(2)]
	if c.failed {
		return
	}
	waits := target != nil && target.Waiting() && !target.Held()
	if waits {
		c.e.release(target, text)
	}
	c.yes(waits)
}

// killFilter selects sessions for CLIENT KILL and CLIENT LIST; the zero value selects all.
type killFilter struct {
	id, maxAge  int64
	addr, laddr string
	class       string
	skip        *Session
}

func (f *killFilter) selects(e *Engine, s *Session) bool {
	switch {
	case f.id != 0 && s.id != f.id,
		f.addr != "" && s.opened.Addr != f.addr,
		f.laddr != "" && s.opened.LocalAddr != f.laddr,
		f.class != "" && s.class() != f.class,
		f.maxAge != 0 && (e.now-s.opened.Now)/1e6 < f.maxAge,
		f.skip == s:
		return false
	}
	return true
}

// class is the type of a connection as CLIENT LIST and KILL name it. No session is listed as a master's or a replica's.
func (s *Session) class() string {
	if s.Subscribed() {
		return "pubsub"
	}
	return "normal"
}

// classArg reads argument i as a type of connection.
func (c *call) classArg(i int) string {
	name := strings.ToLower(string(c.args[i]))
	switch name {
	case "slave":
		return "replica"
	case "normal", "pubsub", "master", "replica":
	default:
		c.failf("ERR Unknown client type '%s'", c.args[i])
	}
	return name
}

func clientKillCommand(c *call) {
	f := killFilter{skip: c.s}
	if len(c.args) == 3 { // the old form: an address, which may be the caller's own
		f = killFilter{addr: string(c.args[2])}
	} else if c.killOptions(&f); c.failed {
		return
	}
	killed := 0
	for _, id := range slices.Sorted(maps.Keys(c.e.sessions)) {
		s := c.e.sessions[id]
		if s.closing || !f.selects(c.e, s) {
			continue
		}
		killed++
		if s == c.s {
			c.outcome = Close
		} else {
			c.e.kill(s)
		}
	}
	switch {
	case len(c.args) > 3:
		c.number(killed)
	case killed > 0:
		c.ok()
	default:
		c.fail("ERR No such client")
	}
}

func (c *call) killOptions(f *killFilter) {
	for o := c.options(2); o.more(); {
		switch {
		case o.word("ID", 1):
			f.id = c.intFrom(o.next(), 1, "ERR client-id should be greater than 0")
		case o.word("MAXAGE", 1):
			f.maxAge = c.intOr(o.next(), "ERR maxage is not an integer or out of range")
			if f.maxAge <= 0 {
				c.fail("ERR maxage should be greater than 0")
			}
		case o.word("TYPE", 1):
			f.class = c.classArg(o.next())
		case o.word("ADDR", 1):
			f.addr = string(c.args[o.next()])
		case o.word("LADDR", 1):
			f.laddr = string(c.args[o.next()])
		case o.word("USER", 1):
			if user := c.args[o.next()]; string(user) != "default" {
				c.failf("ERR No such user '%s'", user)
			}
		case o.word("SKIPME", 1) && is(c.args[o.at+1], "YES"):
			f.skip = c.s
			o.next()
		case o.word("SKIPME", 1) && is(c.args[o.at+1], "NO"):
			f.skip = nil
			o.next()
		default:
			c.fail(errSyntax)
		}
	}
}

// describe returns the line of CLIENT LIST about s. Buffer sizes, which are not kept, are zero.
func (e *Engine) describe(s *Session) string {
	multi := -1
	if s.queue != nil {
		multi = len(s.queue.commands)
	}
	command := "NULL"
	if s.last != nil {
		command = s.last.Name
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=8 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=%d watch=%d "+
		"qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=%s user=default redir=%d "+
		"resp=%d lib-name=%s lib-ver=%s io-thread=0\n",
		s.id, s.opened.Addr, s.opened.LocalAddr, s.name, (e.now-s.opened.Now)/1e6, (e.now-max(s.lastUse, s.opened.Now))/1e6, s.flags(), s.db,
		len(s.to[channels]), len(s.to[patterns]), len(s.to[shards]), multi, len(s.watches),
		command, s.redirection(), max(s.Out.Proto, 2), s.library, s.libraryVersion)
}

// flags are the letters of CLIENT LIST.
func (s *Session) flags() string {
	var letters []byte
	for _, f := range []struct {
		is     bool
		letter byte
	}{
		{s.Subscribed(), 'P'}, {s.queue != nil, 'x'}, {s.Waiting(), 'b'},
		{s.has(trackOn), 't'}, {s.has(trackBroken), 'R'}, {s.has(trackBcast), 'B'},
		{s.spoiled, 'd'}, {s.closing, 'A'}, {s.noEvict, 'e'}, {s.noTouch, 'T'},
	} {
		if f.is {
			letters = append(letters, f.letter)
		}
	}
	if len(letters) == 0 {
		return "N"
	}
	return string(letters)
}

func clientListCommand(c *call) {
	ids := slices.Sorted(maps.Keys(c.e.sessions))
	var f killFilter
	switch {
	case len(c.args) == 2:
	case len(c.args) == 4 && c.is(2, "TYPE"):
		f.class = c.classArg(3)
	case len(c.args) > 3 && c.is(2, "ID"):
		ids = ids[:0]
		for i := 3; i < len(c.args); i++ {
			ids = append(ids, c.intOr(i, "ERR Invalid client ID"))
		}
	default:
		c.fail(errSyntax)
	}
	if c.failed {
		return
	}
	var list []byte
	for _, id := range ids {
		if s := c.e.sessions[id]; s != nil && f.selects(c.e, s) {
			list = append(list, c.e.describe(s)...)
		}
	}
	c.out.Verbatim("txt", string(list))
}
