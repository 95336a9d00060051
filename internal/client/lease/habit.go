package lease

import (
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly/internal/client/record"
)

// habit says whether glances pay: a glance that leaves its caller in doubt costs a second trip, and from then on a first trip with PTTL is cheaper.
// The zero habit says that they do.
type habit struct {
	blind atomic.Int32 // rises with what tells no end, and falls with what does
	slow  atomic.Bool  // the last trip took so long that a second one would be too late
}

// Glances pay as long as three records in four tell when they end, and a trip takes no more than a third of what it may.
const (
	blindStep = 3
	blindFrom = 15
	blindMost = 30
	slowPart  = 3
)

func (h *habit) pay() bool { return !h.slow.Load() && h.blind.Load() < blindFrom }

// met takes what a glance found. The usual case writes nothing that others share.
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

// tells reports whether f says of itself how much it has left, for a caller without a stale window. What another program has stored does not, nor what a
// version did that wrote no end, or a user who may not ask for the time; nor what has a stale window, or was made to outlive its end.
func (f Found) tells() bool {
	return f.Header.Ends != 0 && f.Header.Window == 0 && f.Reckoned >= 0 && f.Left != NoTTL
}

// took takes how long a trip took, and how long it may.
func (h *habit) took(took, most time.Duration) {
	if slow := took > most/slowPart; slow != h.slow.Load() {
		h.slow.Store(slow)
	}
}
