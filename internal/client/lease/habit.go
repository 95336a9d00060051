package lease

import (
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly/internal/client/record"
)

// habit decides whether glances pay off. A glance that leaves its caller in doubt costs a second trip, and then a first trip with PTTL is
// cheaper. In the zero habit they pay off.
type habit struct {
	blind atomic.Int32 // rises with each record that does not state its end, and falls with each that does
	slow  atomic.Bool  // the last trip took so long that there would be no time for a second one
}

// Glances pay off while three records in four state their end, and a trip takes no more than a third of its limit.
const (
	blindStep = 3
	blindFrom = 15
	blindMost = 30
	slowPart  = 3
)

func (h *habit) pay() bool { return !h.slow.Load() && h.blind.Load() < blindFrom }

// met takes a glance's result into account. In the usual case it writes nothing, so goroutines share no write.
func (h *habit) met(f Found) {
	if f.State != Present || f.Kind != record.Plain && f.Kind != record.Value {
		return
	}
	n := h.blind.Load()
	switch {
	case !f.tells():
		if n < blindMost {
			h.blind.Store(n + blindStep)
		}
	case n > 0:
		h.blind.Store(n - 1)
	}
}

// tells reports whether f itself states how much time it has left, to a caller without a stale window. A value of another program does not.
// Neither does a value stored without an end, by an older version or by a Redis user who may not call TIME, nor a value with a stale
// window or one made to outlive its end.
func (f Found) tells() bool {
	return f.Header.Ends != 0 && f.Header.Window == 0 && f.Reckoned >= 0 && f.Left != NoTTL
}

// took takes into account how long a trip took, and how long it may take.
func (h *habit) took(took, most time.Duration) {
	if slow := took > most/slowPart; slow != h.slow.Load() {
		h.slow.Store(slow)
	}
}
