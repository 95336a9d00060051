package engine

var transactionCommands = []Command{
	{Name: "multi", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy, Cats: CatTransaction, run: multiCommand},
	{Name: "exec", Arity: 1, Flags: NoScript | Loading | Stale | SkipSlowlog, Cats: CatTransaction, run: execCommand},
	{Name: "discard", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy, Cats: CatTransaction, run: discardCommand},
	{Name: "watch", Arity: -2, Flags: NoScript | Loading | Stale | Fast | AllowBusy, Cats: CatTransaction, Keys: allKeys, run: watchCommand},
	{Name: "unwatch", Arity: 1, Flags: NoScript | Loading | Stale | Fast | AllowBusy, Cats: CatTransaction, run: unwatchCommand},
}

// queue holds the commands of an open MULTI.
type queue struct {
	commands []queued
	broken   bool // a command was refused, so EXEC will fail
}

type queued struct {
	cmd  *Command
	args [][]byte
}

// copyArgs returns a copy of args in its own memory.
func copyArgs(args [][]byte) [][]byte {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	buf, kept := make([]byte, 0, size), make([][]byte, len(args))
	for i, a := range args {
		start := len(buf)
		buf = append(buf, a...)
		kept[i] = buf[start:len(buf):len(buf)]
	}
	return kept
}

// runsInMulti reports whether cmd runs at once, rather than being queued, while MULTI is open.
func runsInMulti(cmd *Command) bool {
	switch cmd.Name {
	case "exec", "discard", "multi", "watch", "quit", "reset":
		return true
	}
	return false
}

func multiCommand(c *call) {
	if c.s.queue != nil {
		c.fail("ERR MULTI calls can not be nested")
		return
	}
	c.s.queue = new(queue)
	c.ok()
}

func execCommand(c *call) {
	s, e := c.s, c.e
	q := s.queue
	if q == nil {
		c.fail("ERR EXEC without MULTI")
		return
	}
	spoiled := s.spoiled || e.watchesDead(s)
	e.discard(s)
	switch {
	case q.broken:
		c.fail(errExecAbort)
		return
	case spoiled:
		c.out.NullArray()
		return
	}
	c.silent = true // each command records itself
	s.noBlock = true
	c.out.Array(len(q.commands))
	for _, qc := range q.commands {
		if outcome := e.run(s, qc.cmd, qc.args, c.out, nil); outcome != Done && outcome != Blocked {
			c.outcome = outcome
		}
	}
	s.noBlock = s.obeys
}

func discardCommand(c *call) {
	if c.s.queue == nil {
		c.fail("ERR DISCARD without MULTI")
		return
	}
	c.e.discard(c.s)
	c.ok()
}

// discard closes the transaction of s and unwatches everything.
func (e *Engine) discard(s *Session) {
	s.queue, s.spoiled = nil, false
	e.unwatch(s)
}

func watchCommand(c *call) {
	if c.s.queue != nil {
		c.fail("ERR WATCH inside MULTI is not allowed")
		return
	}
	c.ok()
	if c.s.spoiled {
		return // EXEC will fail anyway
	}
	for _, key := range c.args[1:] {
		c.e.watch(c.s, c.db, key)
	}
}

func unwatchCommand(c *call) {
	c.e.unwatch(c.s)
	c.s.spoiled = false
	c.ok()
}
