package engine

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"

	"github.com/mayflycache/mayfly/internal/redis/script"
)

// scriptCommands are EVAL, its relatives, and SCRIPT.
var scriptCommands = []Command{
	{Name: "eval", Arity: -3, Flags: NoScript | MayReplicate | Stale | SkipMonitor | MovableKeys, Cats: CatScripting, Keys: scriptKeys, run: func(c *call) { c.eval(false, false) }},
	{Name: "evalsha", Arity: -3, Flags: NoScript | MayReplicate | Stale | SkipMonitor | MovableKeys, Cats: CatScripting, Keys: scriptKeys, run: func(c *call) { c.eval(true, false) }},
	{Name: "eval_ro", Arity: -3, Flags: ReadOnly | NoScript | Stale | SkipMonitor | MovableKeys, Cats: CatScripting, Keys: scriptKeys, run: func(c *call) { c.eval(false, true) }},
	{Name: "evalsha_ro", Arity: -3, Flags: ReadOnly | NoScript | Stale | SkipMonitor | MovableKeys, Cats: CatScripting, Keys: scriptKeys, run: func(c *call) { c.eval(true, true) }},
	{Name: "script", Arity: -2, Sub: []Command{
		{Name: "script|load", Arity: 3, Flags: NoScript | Stale, Cats: CatScripting, run: scriptLoadCommand},
		{Name: "script|exists", Arity: -3, Flags: NoScript, Cats: CatScripting, run: scriptExistsCommand},
		{Name: "script|flush", Arity: -2, Flags: NoScript, Cats: CatScripting, run: scriptFlushCommand},
		{Name: "script|kill", Arity: 2, Flags: NoScript | AllowBusy, Cats: CatScripting, run: scriptKillCommand},
		{Name: "script|help", Arity: 2, Flags: Loading | Stale, Cats: CatScripting, run: func(c *call) {
			c.help(`
EXISTS <sha1> [<sha1> ...]
    Return information about the existence of the scripts in the script cache.
FLUSH [ASYNC|SYNC]
    Flush the Lua scripts cache.
KILL
    Kill the currently executing Lua script.
LOAD <script>
    Load a script into the scripts cache without executing it.`)
		}},
	}},
}

var scriptKeys = Keys{Find: func(args [][]byte) []int {
	at := countedFrom(args, 2)
	if at == nil {
		at = []int{} // having no keys is no error
	}
	return at
}}

const errNoScript = "NOSCRIPT No matching script. Please use EVAL."

// eval runs the script in argument 1, or the one whose SHA1 it is.
func (c *call) eval(bySum, readOnly bool) {
	keys := c.int(2)
	switch {
	case keys > int64(len(c.args)-3):
		c.fail("ERR Number of keys can't be greater than number of args")
	case keys < 0:
		c.fail("ERR Number of keys can't be negative")
	}
	if c.failed {
		return
	}
	var chunk *script.Chunk
	if !bySum {
		if chunk = c.loadScript(c.args[1], true); chunk != nil {
			c.e.stats.evictedScripts += int64(c.e.scripts.use(chunk.Sum))
		}
	} else if chunk = c.e.scripts.find(c.args[1]); chunk == nil {
		c.fail(errNoScript)
	}
	switch {
	case c.failed:
		return
	case chunk.NoCluster && c.e.options.Cluster != nil:
		c.fail("ERR Can not run script on cluster, 'no-cluster' flag is set.")
		return
	case readOnly && chunk.Flagged && !chunk.NoWrites:
		c.fail("ERR Can not execute a script with write flag using *_ro command.")
		return
	}
	at := 3 + int(keys)
	c.e.startScript(c, chunk, readOnly, c.args[3:at], c.args[at:])
}

// loadScript compiles a script, unless it is known; the command fails if that fails.
func (c *call) loadScript(source []byte, eval bool) *script.Chunk {
	chunk, err := c.e.scripts.load(source, eval)
	if err != nil {
		c.fail(err.Error())
	}
	return chunk
}

// library holds the known scripts and the running one.
type library struct {
	chunks  map[string]*script.Chunk // by SHA1
	evaled  []string                 // the SHA1s of scripts that came with EVAL, the least recently used first
	machine *script.Machine
	session *Session // runs the commands of every script
	running *running
}

// find returns the script with this SHA1, given in either case, or nil.
func (l *library) find(sum []byte) *script.Chunk {
	if len(sum) != 2*sha1.Size {
		return nil
	}
	return l.chunks[string(lower(make([]byte, 0, 2*sha1.Size), sum))]
}

// maxEvaled is how many scripts that came with EVAL are kept. As in Redis 7.4, those from SCRIPT LOAD are all kept.
const maxEvaled = 500

// use notes that a script was used, drops the least recently used ones beyond maxEvaled, and returns how many it dropped.
func (l *library) use(sum string) (forgotten int) {
	last := len(l.evaled) - 1
	if last >= 0 && l.evaled[last] == sum && last < maxEvaled {
		return 0
	}
	at := slices.Index(l.evaled, sum)
	if at < 0 {
		return 0
	}
	l.evaled = append(slices.Delete(l.evaled, at, at+1), sum)
	for len(l.evaled) > maxEvaled {
		delete(l.chunks, l.evaled[0])
		l.evaled = slices.Delete(l.evaled, 0, 1)
		forgotten++
	}
	return forgotten
}

// load compiles a script, unless it is known. A script from EVAL may be dropped later.
func (l *library) load(source []byte, eval bool) (*script.Chunk, error) {
	digest := sha1.Sum(source)
	var text [2 * sha1.Size]byte
	hex.Encode(text[:], digest[:])
	if chunk := l.chunks[string(text[:])]; chunk != nil {
		if !eval {
			l.evaled = slices.DeleteFunc(l.evaled, func(sum string) bool { return sum == chunk.Sum })
		}
		return chunk, nil
	}
	chunk, err := script.Compile(string(text[:]), string(source))
	if err != nil {
		return nil, err
	}
	if l.chunks == nil {
		l.chunks = make(map[string]*script.Chunk)
	}
	l.chunks[chunk.Sum] = chunk
	if eval {
		l.evaled = append(l.evaled, chunk.Sum)
	}
	return chunk, nil
}

func scriptLoadCommand(c *call) {
	if chunk := c.loadScript(c.args[2], false); !c.failed {
		c.out.BulkString(chunk.Sum)
	}
}

func scriptExistsCommand(c *call) {
	c.out.Array(len(c.args) - 2)
	for _, sum := range c.args[2:] {
		c.yes(c.e.scripts.find(sum) != nil)
	}
}

func scriptFlushCommand(c *call) {
	if len(c.args) > 3 || len(c.args) == 3 && !c.is(2, "ASYNC") && !c.is(2, "SYNC") {
		c.fail("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
		return
	}
	c.e.scripts.chunks, c.e.scripts.evaled = nil, nil
	c.ok()
}

func scriptKillCommand(c *call) {
	r := c.e.scripts.running
	switch {
	case r == nil:
		c.fail("NOTBUSY No scripts in execution right now.")
	case r.wrote:
		c.fail("UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script " +
			"termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.")
	default:
		r.run.Kill("Script killed by user with SCRIPT KILL...")
		c.ok()
	}
}
