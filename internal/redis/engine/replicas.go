package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// replicaCommands wait for replicas (see feed.go) and for their append-only files. Replicas report nothing about those files, so waiting for
// them ends only by the timeout.
var replicaCommands = []Command{
	{Name: "wait", Arity: 3, Flags: Blocking, Cats: CatConnection, run: waitCommand},
	{Name: "waitaof", Arity: 4, Flags: Blocking, Cats: CatConnection, run: waitaofCommand},
}

const errWaitAtReplica = "ERR WAIT cannot be used with replica instances. Please also note that if a replica is configured to not be read-only " +
	"(which is not the default) writes to replicas are just local and are not propagated."

func waitaofCommand(c *call) {
	const tooMany = "ERR value is out of range, must be positive"
	local := c.int(1)
	switch {
	case c.failed:
	case c.e.master != nil:
		c.fail("ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and are not propagated.")
	case local < 0 || local > 1:
		c.fail("ERR value is out of range, value must between 0 and 1")
	}
	replicas := c.intOr(2, tooMany)
	if replicas < 0 {
		c.fail(tooMany)
	}
	until := c.waitMilliseconds(3)
	switch {
	case local > 0 && c.e.log != nil:
		c.fail("ERR WAITAOF does not count the journal of this server: with appendfsync always every reply has waited for it")
	case local > 0:
		c.fail("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
	}
	if !c.failed {
		c.parkUntil(until, replicas == 0, func(w *resp.Writer) {
			w.Array(2)
			w.Int(0)
			w.Int(0)
		})
	}
}

// waitMilliseconds reads argument i as a timeout in milliseconds, and returns when it ends in unix milliseconds; 0: never.
func (c *call) waitMilliseconds(i int) int64 {
	n := c.intOr(i, "ERR timeout is not an integer or out of range")
	switch {
	case n < 0:
		c.fail(errTimeoutSign)
	case n > math.MaxInt64-c.e.ms:
		c.fail("ERR timeout is out of range")
	case n > 0:
		return c.e.ms + n
	}
	return 0
}

// parkUntil makes the session wait for something that no key brings, unless already is true or the session cannot wait.
func (c *call) parkUntil(deadline int64, already bool, reply func(w *resp.Writer)) {
	if already || c.s.noBlock {
		reply(c.out)
		return
	}
	c.park(nil, values.Missing, deadline)
	c.s.waiting.late = reply
}
