package engine

import (
	"github.com/mayflycache/mayfly/internal/redis/rdb"
)

// dumpCommands are DUMP and RESTORE. They use Redis's own format: each server can restore the other's dumps.
var dumpCommands = []Command{
	{Name: "dump", Arity: 2, Flags: ReadOnly, Cats: CatKeyspace, Keys: oneKey, run: dumpCommand},
	{Name: "restore", Arity: -4, Flags: Write | DenyOOM, Cats: CatKeyspace | CatDangerous, Keys: oneKey, run: restoreCommand},
}

func dumpCommand(c *call) {
	o := c.read(c.args[1])
	if o == nil {
		c.out.Null()
		return
	}
	c.out.Bulk(rdb.Seal(appendValue(nil, o)))
}

// restoreOptions are those of RESTORE. idle and freq are -1 unless given.
type restoreOptions struct {
	replace, absolute bool
	idle, freq        int64
}

func (c *call) restoreOptions() restoreOptions {
	o := restoreOptions{idle: -1, freq: -1}
	for words := c.options(4); words.more(); {
		switch {
		case words.word("REPLACE", 0):
			o.replace = true
		case words.word("ABSTTL", 0):
			o.absolute = true
		case words.word("IDLETIME", 1) && o.freq == -1:
			if o.idle = c.int(words.next()); o.idle < 0 {
				c.fail("ERR Invalid IDLETIME value, must be >= 0")
			}
		case words.word("FREQ", 1) && o.idle == -1:
			if o.freq = c.int(words.next()); o.freq < 0 || o.freq > 255 {
				c.fail("ERR Invalid FREQ value, must be >= 0 and <= 255")
			}
		default:
			c.fail(errSyntax)
		}
	}
	return o
}

func restoreCommand(c *call) {
	options := c.restoreOptions()
	key := c.args[1]
	if !options.replace && c.write(key) != nil {
		c.fail(errBusyKey)
	}
	ttl := c.int(2)
	if ttl < 0 {
		c.fail("ERR Invalid TTL value, must be >= 0")
	}
	r, err := rdb.Open(c.args[3])
	if err != nil {
		c.fail("ERR DUMP payload version or checksum are wrong")
	}
	if c.failed {
		return
	}
	s, v, ok := payload{r, c.e.limits}.readValue()
	if !ok {
		c.fail("ERR Bad data format")
		return
	}
	replaced := c.remove(key)
	if ttl > 0 && !options.absolute {
		ttl += c.e.ms
	}
	if ttl != 0 && ttl <= c.e.ms { // already over: no key is made
		if replaced {
			c.wrote(key, 1, notifyGeneric, "del")
			c.rewrite("DEL", key)
		}
		c.ok()
		return
	}
	var o *object
	if v != nil {
		o = c.add(key, v)
	} else {
		o = c.addString(key, s, encodingOf(s))
	}
	if ttl != 0 {
		c.setDeadline(o, ttl)
		c.rewrite("RESTORE", key, ttl, c.args[3], "ABSTTL")
	}
	c.restoreUse(o, options)
	c.wrote(key, 1, notifyGeneric, "restore")
	c.ok()
}

// restoreUse sets o's idle time or frequency, if the options give one and the eviction policy keeps that figure.
func (c *call) restoreUse(o *object, options restoreOptions) {
	lfu := c.e.settings.policy.lfu()
	switch {
	case options.freq >= 0 && lfu:
		o.setAccess(c.e.minutes()<<8 | uint32(options.freq))
	case options.idle >= 0 && !lfu:
		o.setAccess(uint32(c.e.now/1e6 - options.idle))
	}
}
