package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// clientFlags are what nearly all of CLIENT's subcommands have; those about other connections are Admin too.
const clientFlags = NoScript | Loading | Stale

// clientCommands are CLIENT and its subcommands.
var clientCommands = []Command{{Name: "client", Arity: -2, Sub: []Command{
	{Name: "client|id", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: func(c *call) { c.out.Int(c.s.id) }},
	{Name: "client|info", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: clientInfoCommand},
	{Name: "client|list", Arity: -2, Flags: clientFlags | Admin, Cats: CatConnection, run: clientListCommand},
	{Name: "client|setname", Arity: 3, Flags: clientFlags, Cats: CatConnection, run: clientSetnameCommand},
	{Name: "client|getname", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: clientGetnameCommand},
	{Name: "client|setinfo", Arity: 4, Flags: clientFlags, Cats: CatConnection, run: clientSetinfoCommand},
	{Name: "client|kill", Arity: -3, Flags: clientFlags | Admin, Cats: CatConnection, run: clientKillCommand},
	{Name: "client|unblock", Arity: -3, Flags: clientFlags | Admin, Cats: CatConnection, run: clientUnblockCommand},
	{Name: "client|reply", Arity: 3, Flags: clientFlags, Cats: CatConnection, run: clientReplyCommand},
	{Name: "client|no-evict", Arity: 3, Flags: clientFlags | Admin, Cats: CatConnection, run: func(c *call) { c.onOff(&c.s.noEvict) }},
	{Name: "client|no-touch", Arity: 3, Flags: clientFlags, Cats: CatConnection, run: func(c *call) { c.onOff(&c.s.noTouch) }},
	{Name: "client|tracking", Arity: -3, Flags: clientFlags, Cats: CatConnection, run: clientTrackingCommand},
	{Name: "client|caching", Arity: 3, Flags: clientFlags, Cats: CatConnection, run: clientCachingCommand},
	{Name: "client|trackinginfo", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: clientTrackinginfoCommand},
	{Name: "client|getredir", Arity: 2, Flags: clientFlags, Cats: CatConnection, run: clientGetredirCommand},
	{Name: "client|help", Arity: 2, Flags: Loading | Stale, Cats: CatConnection, run: func(c *call) { c.help(clientHelp) }},
}}}

func clientSetnameCommand(c *call) {
	if !validName(c.args[2]) {
		c.fail(errClientName)
		return
	}
	c.s.name = string(c.args[2])
	c.ok()
}

func clientGetnameCommand(c *call) {
	if c.s.name == "" {
		c.out.Null()
		return
	}
	c.out.BulkString(c.s.name)
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

// onOff sets what the third argument says.
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
	if len(c.args) == 4 {
		switch {
		case c.is(3, "TIMEOUT"):
		case c.is(3, "ERROR"):
			text = errUnblocked
		default:
			c.fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
			return
		}
	} else if len(c.args) > 4 {
		c.fail(errSyntax)
		return
	}
	id, ok := c.int(2)
	if !ok {
		return
	}
	target := c.e.sessions[id]
	if target == nil || !target.Waiting() {
		c.yes(false)
		return
	}
	c.e.release(target, text)
	c.yes(true)
}

// killFilter is what CLIENT KILL and CLIENT LIST select sessions by; the zero value selects all.
type killFilter struct {
	id, maxAge  int64
	addr, laddr string
	class       string
	skip        *Session
}

func (f *killFilter) selects(e *Engine, s *Session) bool {
	switch {
	case f.id != 0 && s.id != f.id,
		f.addr != "" && s.addr != f.addr,
		f.laddr != "" && s.laddr != f.laddr,
		f.class != "" && s.class() != f.class,
		f.maxAge != 0 && (e.now-s.created)/1e6 < f.maxAge,
		f.skip == s:
		return false
	}
	return true
}

// class is the type of a connection as CLIENT LIST and KILL name it. Masters and replicas there are none.
func (s *Session) class() string {
	if s.subscribed() {
		return "pubsub"
	}
	return "normal"
}

// classArg reads argument i as a type of connection.
func (c *call) classArg(i int) (string, bool) {
	name := string(lower(make([]byte, 0, 16), c.args[i]))
	switch name {
	case "slave":
		return "replica", true
	case "normal", "pubsub", "master", "replica":
		return name, true
	}
	c.failf("ERR Unknown client type '%s'", c.args[i])
	return "", false
}

func clientKillCommand(c *call) {
	f := killFilter{skip: c.s}
	if len(c.args) == 3 { // the form of old: an address, which may be the caller's own
		f = killFilter{addr: string(c.args[2])}
	} else if !c.killOptions(&f) {
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

func (c *call) killOptions(f *killFilter) (ok bool) {
	for i := 2; i < len(c.args); i += 2 {
		if i+1 == len(c.args) {
			c.fail(errSyntax)
			return false
		}
		value := c.args[i+1]
		switch {
		case c.is(i, "ID"):
			id, ok := values.ParseInt(value)
			if !ok || id < 1 {
				c.fail("ERR client-id should be greater than 0")
				return false
			}
			f.id = id
		case c.is(i, "MAXAGE"):
			age, ok := values.ParseInt(value)
			if !ok {
				c.fail("ERR maxage is not an integer or out of range")
				return false
			}
			if age <= 0 {
				c.fail("ERR maxage should be greater than 0")
				return false
			}
			f.maxAge = age
		case c.is(i, "TYPE"):
			if f.class, ok = c.classArg(i + 1); !ok {
				return false
			}
		case c.is(i, "ADDR"):
			f.addr = string(value)
		case c.is(i, "LADDR"):
			f.laddr = string(value)
		case c.is(i, "USER"):
			if string(value) != "default" {
				c.failf("ERR No such user '%s'", value)
				return false
			}
		case c.is(i, "SKIPME") && is(value, "YES"):
			f.skip = c.s
		case c.is(i, "SKIPME") && is(value, "NO"):
			f.skip = nil
		default:
			c.fail(errSyntax)
			return false
		}
	}
	return true
}

// describe writes the line of CLIENT LIST about s. Sizes of buffers, which are not kept, are zero.
func (e *Engine) describe(s *Session) string {
	multi := -1
	if s.queue != nil {
		multi = len(s.queue.commands)
	}
	command, redirect := "NULL", int64(-1)
	if s.last != nil {
		command = s.last.Name
	}
	if s.has(trackOn) {
		redirect = s.redirect
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=8 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=%d multi=%d watch=%d "+
		"qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=%s user=default redir=%d "+
		"resp=%d lib-name=%s lib-ver=%s io-thread=0\n",
		s.id, s.addr, s.laddr, s.name, (e.now-s.created)/1e6, (e.now-max(s.lastUse, s.created))/1e6, s.flags(), s.db,
		len(s.to[channels]), len(s.to[patterns]), len(s.to[shards]), multi, len(s.watches),
		command, redirect, max(s.Out.Proto, 2), s.library, s.libraryVersion)
}

// flags are the letters of CLIENT LIST.
func (s *Session) flags() string {
	var letters []byte
	for _, f := range []struct {
		is     bool
		letter byte
	}{
		{s.subscribed(), 'P'}, {s.queue != nil, 'x'}, {s.Waiting(), 'b'},
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

func clientInfoCommand(c *call) { c.out.Verbatim("txt", c.e.describe(c.s)) }

func clientListCommand(c *call) {
	ids := slices.Sorted(maps.Keys(c.e.sessions))
	var f killFilter
	switch {
	case len(c.args) == 2:
	case len(c.args) == 4 && c.is(2, "TYPE"):
		var ok bool
		if f.class, ok = c.classArg(3); !ok {
			return
		}
	case len(c.args) > 3 && c.is(2, "ID"):
		ids = ids[:0]
		for _, arg := range c.args[3:] {
			id, ok := values.ParseInt(arg)
			if !ok {
				c.fail("ERR Invalid client ID")
				return
			}
			ids = append(ids, id)
		}
	default:
		c.fail(errSyntax)
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

// clientInfo is what CLIENT LIST shows of a session and nothing else needs.
type clientInfo struct {
	library, libraryVersion string
	last                    *Command
	lastUse                 int64 // unix microseconds
	noEvict                 bool
}

// reset is what RESET does to it.
func (i *clientInfo) reset() { i.noEvict = false }
