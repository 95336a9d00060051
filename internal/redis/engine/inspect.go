package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// inspectCommands tell how a key is stored.
var inspectCommands = []Command{
	{Name: "object", Arity: -2, Sub: []Command{
		{Name: "object|encoding", Arity: 3, Flags: ReadOnly, Cats: CatKeyspace, Keys: secondKey, run: inspect(func(c *call, o *object) { c.out.BulkString(o.encoding()) })},
		{Name: "object|freq", Arity: 3, Flags: ReadOnly, Cats: CatKeyspace, Keys: secondKey, run: inspect(objectFreqCommand)},
		{Name: "object|help", Arity: 2, Flags: Loading | Stale, Cats: CatKeyspace, run: func(c *call) { c.help(objectHelp) }},
		{Name: "object|idletime", Arity: 3, Flags: ReadOnly, Cats: CatKeyspace, Keys: secondKey, run: inspect(objectIdletimeCommand)},
		{Name: "object|refcount", Arity: 3, Flags: ReadOnly, Cats: CatKeyspace, Keys: secondKey, run: inspect(objectRefcountCommand)},
	}},
	{Name: "memory", Arity: -2, Sub: []Command{
		{Name: "memory|help", Arity: 2, Flags: Loading | Stale, run: func(c *call) { c.help(memoryHelp) }},
		{Name: "memory|usage", Arity: -3, Flags: ReadOnly, Keys: secondKey, run: memoryUsageCommand},
	}},
}

// secondKey is the argument after a subcommand.
var secondKey = Keys{First: 2, Last: 2, Step: 1}

const (
	errNoLFU = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
	errLFU   = "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
)

// inspect calls reply with the object of a subcommand's key, without counting as a use of it. The reply for a missing key is null.
func inspect(reply func(c *call, o *object)) func(c *call) {
	return func(c *call) {
		o := c.live(c.args[2])
		if o == nil {
			c.e.stats.misses++
			c.out.Null()
			return
		}
		c.e.stats.hits++
		reply(c, o)
	}
}

// Redis shares the objects of small numbers, and reports it, unless eviction needs a time of use for each.
const (
	sharedInts     = 10000
	sharedRefcount = 1<<31 - 1
)

func objectRefcountCommand(c *call, o *object) {
	s := &c.e.settings
	if o.kind() == values.String && o.stringEncoding() == integer && (s.maxMemory == 0 || !s.policy.ages()) {
		if n, _ := values.ParseInt(o.str); 0 <= n && n < sharedInts {
			c.out.Int(sharedRefcount)
			return
		}
	}
	c.out.Int(1)
}

func objectIdletimeCommand(c *call, o *object) {
	if c.e.settings.policy.lfu() {
		c.fail(errLFU)
	} else {
		c.out.Int(o.idle(c.e))
	}
}

func objectFreqCommand(c *call, o *object) {
	if c.e.settings.policy.lfu() {
		c.number(int(o.frequency(c.e)))
	} else {
		c.fail(errNoLFU)
	}
}

const objectHelp = `
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
    <key>.`

// memoryUsageCommand replies with the memory that the key takes here, which is roughly what it takes in Redis. A dead key counts too.
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

const memoryHelp = `
USAGE <key> [SAMPLES <count>]
    Return memory in bytes used by <key> and its value. Nested values are
    sampled up to <count> times (default: 5, 0 means sample all).`
