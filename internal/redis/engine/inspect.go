package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// inspectCommands tell how a key is held.
var inspectCommands = []Command{
	{Name: "object", Arity: -2, Sub: []Command{
		{Name: "object|encoding", Arity: 3, Flags: ReadOnly, Cats: CatKeyspace, Keys: secondKey, run: objectEncodingCommand},
		{Name: "object|freq", Arity: 3, Flags: ReadOnly, Cats: CatKeyspace, Keys: secondKey, run: objectFreqCommand},
		{Name: "object|help", Arity: 2, Flags: Loading | Stale, Cats: CatKeyspace, run: objectHelpCommand},
		{Name: "object|idletime", Arity: 3, Flags: ReadOnly, Cats: CatKeyspace, Keys: secondKey, run: objectIdletimeCommand},
		{Name: "object|refcount", Arity: 3, Flags: ReadOnly, Cats: CatKeyspace, Keys: secondKey, run: objectRefcountCommand},
	}},
	{Name: "memory", Arity: -2, Sub: []Command{
		{Name: "memory|help", Arity: 2, Flags: Loading | Stale, run: memoryHelpCommand},
		{Name: "memory|usage", Arity: -3, Flags: ReadOnly, Keys: secondKey, run: memoryUsageCommand},
	}},
}

// secondKey is the argument after a subcommand.
var secondKey = Keys{First: 2, Last: 2, Step: 1}

const (
	errNoLFU = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
	errLFU   = "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
)

// inspected returns the object of a subcommand's key, without any trace of having asked. Where there is none it replies null.
func (c *call) inspected() *object {
	o := c.live(c.args[2])
	if o == nil {
		c.e.stats.misses++
		c.out.Null()
		return nil
	}
	c.e.stats.hits++
	return o
}

func objectEncodingCommand(c *call) {
	if o := c.inspected(); o != nil {
		c.out.BulkString(o.encoding())
	}
}

// Redis shares the objects of small numbers, and says so, unless each must carry a time of its own for eviction.
const (
	sharedInts     = 10000
	sharedRefcount = 1<<31 - 1
)

func objectRefcountCommand(c *call) {
	o := c.inspected()
	if o == nil {
		return
	}
	s := &c.e.settings
	if o.kind() == values.String && o.stringEncoding() == integer && (s.maxMemory == 0 || !s.policy.ages()) {
		if n, _ := values.ParseInt(o.str); 0 <= n && n < sharedInts {
			c.out.Int(sharedRefcount)
			return
		}
	}
	c.out.Int(1)
}

func objectIdletimeCommand(c *call) {
	o := c.inspected()
	switch {
	case o == nil:
	case c.e.settings.policy.lfu():
		c.fail(errLFU)
	default:
		c.out.Int(o.idle(c.e))
	}
}

func objectFreqCommand(c *call) {
	o := c.inspected()
	switch {
	case o == nil:
	case !c.e.settings.policy.lfu():
		c.fail(errNoLFU)
	default:
		c.number(int(o.frequency(c.e)))
	}
}

func objectHelpCommand(c *call) {
	c.help(`
ENCODING <key>
    Return the kind of internal representation used in order to store the value
    associated with a <key>.
FREQ <key>
    Return the access frequency index of the <key>. The returned integer is
    proportional to the logarithm of the recent access frequency of the key.
IDLETIME <key>
    Return the idle time of the <key>, that is the approximated number of
    seconds elapsed since the last access to the key.
REFCOUNT <key>
    Return the number of references of the value associated with the specified
    <key>.`)
}

// memoryUsageCommand replies what the key takes here, not what it would in Redis; that is about the same. A dead key takes it too.
func memoryUsageCommand(c *call) {
	for words := c.options(3); words.more(); {
		if !words.word("SAMPLES", 1) || c.int(words.next()) < 0 {
			c.fail(errSyntax)
		}
	}
	if c.failed {
		return
	}
	if o := c.db.find(c.args[2]); o != nil {
		c.number(o.size())
	} else {
		c.out.Null()
	}
}

func memoryHelpCommand(c *call) {
	c.help(`
USAGE <key> [SAMPLES <count>]
    Return memory in bytes used by <key> and its value. Nested values are
    sampled up to <count> times (default: 5, 0 means sample all).`)
}
