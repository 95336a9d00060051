package mayfly

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/check"
)

// OriginOptions set up an [Origin]. The zero value finds the limit.
type OriginOptions struct {
	// Limit is how many loads may ask the origin at once from this process. Zero: as many as it can work on, which is found while they
	// run. Negative: no bound.
	Limit int

	// Timeout is how long a load may take: the longest LoadTimeout of the caches. The limit that is found keeps loads well below
	// it. Zero is 10 s.
	Timeout time.Duration
}

// Origin stands for what loaders ask, such as a database, and bounds the loads that ask it at once. By default every cache has its own; caches
// that ask the same database should share one, otherwise each finds a limit of its own:
//
//	db, err := mayfly.NewOrigin(mayfly.OriginOptions{})
//	users, err := cacheaside.New(users, loadUser, cacheaside.Options{Origin: db})
//	posts, err := cacheaside.New(posts, loadPost, cacheaside.Options{Origin: db})
//
// Loads beyond the limit wait in a queue, in order, and cost the origin nothing; so an empty Redis cannot bring the origin down.
// docs/overload.md tells how the limit is found. It is safe for concurrent use, starts no goroutine and needs no Close.
type Origin struct{ limiter *admission.Limiter }

// maxLimit is more than one process can have in flight.
const maxLimit = 1_000_000

// NewOrigin returns an origin. It does no I/O.
func NewOrigin(o OriginOptions) (*Origin, error) {
	c := check.In("OriginOptions.")
	c.Refuse(o.Limit > maxLimit, "Limit must be at most %d, got %d: a negative one is no limit", maxLimit, o.Limit)
	c.TTL("Timeout", o.Timeout)
	if err := c.Err(); err != nil {
		return nil, fmt.Errorf("mayfly: %w", err)
	}
	l, err := admission.New(admission.Options{Limit: o.Limit, Timeout: cmp.Or(o.Timeout, 10*time.Second)})
	if err != nil {
		return nil, fmt.Errorf("mayfly: %w", err)
	}
	return &Origin{l}, nil
}

// OriginStats say how busy an origin is.
type OriginStats struct {
	Limit    int // loads that may be in flight; negative: any number
	InFlight int // running loads; more than Limit when loads wait for each other, or run on after they were given up
	Queued   int // loads waiting for their turn

	Entered uint64        // loads that began
	Refused uint64        // loads that left the queue without a turn, and skipped renewals
	Waited  time.Duration // total time in the queue, of loads that began
}

// Stats returns what the origin is doing now, and the sums since it was made.
func (o *Origin) Stats() OriginStats { return OriginStats(o.limiter.Stats()) }
