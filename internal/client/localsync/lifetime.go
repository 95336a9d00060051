package localsync

import (
	"time"

	"github.com/mayflycache/mayfly/internal/client/localstore"
)

// Ticket is the right to insert a copy of what was read after it was drawn. The zero Ticket gives no right.
type Ticket struct {
	change   localstore.Ticket
	at, most int64
}

// Begin draws a ticket for key. It must be called before Redis is read.
func (t *Local) Begin(key string) Ticket {
	t.begun.Add(1)
	// Draw the ticket first, then check the trust. If trust is lost in between, the answer is no. If it is lost later, everything is
	// dropped and the ticket is worthless.
	change := t.store.Ticket(key)
	now := t.clock.Now()
	if !t.inStep(now) {
		t.wake()
		return Ticket{}
	}
	return Ticket{change, now, t.most.Load()}
}

// End returns, on the clock of Now, when a value ends that had left to live when Redis was asked. The clock counts whole milliseconds, so
// End subtracts one: a copy never outlives its original.
func (k Ticket) End(left time.Duration) int64 { return k.at + left.Milliseconds() - 1 }

// Insert keeps a copy of what was read under ticket k with left to live, unless key has changed since.
func Insert[V any](t *Local, v *localstore.Values[V], key string, k Ticket, value V, cost int64, left time.Duration) {
	if k.at == 0 {
		return
	}
	end := min(k.End(left), k.at+k.most-1)
	if v.Insert(key, k.change, value, cost, end, t.clock.Now()) == localstore.Outdated {
		t.counts.outdated.Add(1)
	}
}
