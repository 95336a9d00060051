package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// databaseCommands are about whole databases.
var databaseCommands = []Command{
	{Name: "dbsize", Arity: 1, Flags: ReadOnly | Fast, Cats: CatKeyspace, run: dbsizeCommand},
	{Name: "flushall", Arity: -1, Flags: Write, Cats: CatKeyspace | CatDangerous, run: func(c *call) { c.flush(c.e.dbs[:]) }},
	{Name: "flushdb", Arity: -1, Flags: Write, Cats: CatKeyspace | CatDangerous, run: func(c *call) { c.flush([]*db{c.db}) }},
	{Name: "swapdb", Arity: 3, Flags: Write | Fast, Cats: CatKeyspace | CatDangerous, run: swapdbCommand},
}

// dbsizeCommand counts dead keys that have not been removed yet, as Redis does.
func dbsizeCommand(c *call) { c.number(c.db.len()) }

// flush empties databases. SYNC and ASYNC are the same here: the garbage collector does the work.
func (c *call) flush(dbs []*db) {
	if len(c.args) > 2 || len(c.args) == 2 && !c.is(1, "SYNC") && !c.is(1, "ASYNC") {
		c.fail(errSyntax)
		return
	}
	for _, d := range dbs {
		c.e.spoilAll(d, nil)
		c.e.changes += int64(d.len()) + 1
		d.leave()
	}
	c.e.invalidateAll()
	c.ok()
}

func swapdbCommand(c *call) {
	if c.e.options.Cluster != nil {
		c.fail("ERR SWAPDB is not allowed in cluster mode")
	}
	a := c.intOr(1, "ERR invalid first DB index")
	b := c.intOr(2, "ERR invalid second DB index")
	switch {
	case min(a, b) < 0 || max(a, b) >= Databases:
		c.fail(errInvalidDB)
	case !c.failed:
		c.e.swap(c.e.dbs[a], c.e.dbs[b])
		c.e.changes++
		c.ok()
	}
}

// swap exchanges the contents of two databases. Watchers and waiters stay with the number.
func (e *Engine) swap(a, b *db) {
	if a == b {
		return
	}
	e.spoilAll(a, &b.keyspace)
	e.spoilAll(b, &a.keyspace)
	a.keyspace, b.keyspace = b.keyspace, a.keyspace
	a.settle()
	b.settle()
	e.signalAll(a)
	e.signalAll(b)
}

// debugCommands are the subcommands of DEBUG that tests of clients need.
var debugCommands = []Command{
	{Name: "debug", Arity: -2, Flags: Admin | NoScript | Loading | Stale, run: debugCommand},
}

func debugCommand(c *call) {
	switch {
	case c.is(1, "SLEEP") && len(c.args) == 3:
		seconds, _ := values.ParseFloat(c.args[2])
		c.e.stallUntil = c.e.now + int64(seconds*1e6)
		c.outcome = Stalled
		c.ok()
	case c.is(1, "SET-ACTIVE-EXPIRE") && len(c.args) == 3:
		on, _ := values.ParseInt(c.args[2])
		c.e.activeOff = on == 0
		c.ok()
	case (c.is(1, "RELOAD") || c.is(1, "LOADAOF")) && len(c.args) == 2:
		if err := c.e.reload(c.is(1, "LOADAOF")); err != nil {
			c.fail("ERR " + err.Error())
			return
		}
		c.ok()
	case c.is(1, "HELP") && len(c.args) == 2:
		c.help(`
LOADAOF
    Flush the AOF buffers on disk and reload the AOF in memory.
RELOAD
    Save the data and load them again.
SET-ACTIVE-EXPIRE <0|1>
    Setting it to 0 disables expiring keys (and hash-fields) in background
    when they are not accessed (otherwise the Redis behavior). Setting it
    to 1 reenables back the default.
SLEEP <seconds>
    Stop the server for <seconds>. Decimals allowed.`)
	default:
		c.fail(wrongSubcommand(c.args))
	}
}
