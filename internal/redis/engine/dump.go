package engine

import (
	"github.com/mayflycache/mayfly/internal/redis/rdb"
)

// dumpCommands are DUMP and RESTORE. What is between them is Redis's own form: each server takes the other's.
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

// restoreOptions are those of RESTORE. idle and freq are -1 if not given.
type restoreOptions struct {
	replace, absolute bool
	idle, freq        int64
}

func (c *call) restoreOptions() (o restoreOptions, ok bool) {
	o.idle, o.freq = -1, -1
	for i := 4; i < len(c.args); i++ {
		more := i+1 < len(c.args)
		switch {
		case c.is(i, "REPLACE"):
			o.replace = true
		case c.is(i, "ABSTTL"):
			o.absolute = true
		case c.is(i, "IDLETIME") && more && o.freq == -1:
			i++
			if o.idle, ok = c.int(i); !ok {
				return o, false
			}
			if o.idle < 0 {
				c.fail("ERR Invalid IDLETIME value, must be >= 0")
				return o, false
			}
		case c.is(i, "FREQ") && more && o.idle == -1:
			i++
			if o.freq, ok = c.int(i); !ok {
				return o, false
			}
			if o.freq < 0 || o.freq > 255 {
				c.fail("ERR Invalid FREQ value, must be >= 0 and <= 255")
				return o, false
			}
		default:
			c.fail(errSyntax)
			return o, false
		}
	}
	return o, true
}

func restoreCommand(c *call) {
	options, ok := c.restoreOptions()
	if !ok {
		return
	}
	key := c.args[1]
	if !options.replace && c.write(key) != nil {
		c.fail(errBusyKey)
		return
	}
	ttl, ok := c.int(2)
	if !ok {
		return
	}
	if ttl < 0 {
		c.fail("ERR Invalid TTL value, must be >= 0")
		return
	}
	r, err := rdb.Open(c.args[3])
	if err != nil {
		c.fail("ERR DUMP payload version or checksum are wrong")
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
	if ttl != 0 && ttl <= c.e.ms { // it is over already: no key is made
		if replaced {
			c.changed(key, 1)
			c.notify(notifyGeneric, "del", key)
			if c.recording() {
				c.rewrite([]byte("DEL"), key)
			}
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
		if c.recording() {
			c.rewrite([]byte("RESTORE"), key, decimal(ttl), c.args[3], []byte("ABSTTL"))
		}
	}
	c.restoreUse(o, options)
	c.changed(key, 1)
	c.notify(notifyGeneric, "restore", key)
	c.ok()
}

// restoreUse sets when or how often o was used, if the options say so and the eviction policy keeps that figure.
func (c *call) restoreUse(o *object, options restoreOptions) {
	lfu := c.e.settings.policy.lfu()
	switch {
	case options.freq >= 0 && lfu:
		o.setAccess(c.e.minutes()<<8 | uint32(options.freq))
	case options.idle >= 0 && !lfu:
		o.setAccess(uint32(c.e.now/1e6 - options.idle))
	}
}
