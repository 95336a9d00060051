package lease

import (
	"context"
	"time"
)

// Want is what a caller needs of one key.
type Want struct {
	Key string

	// Seen is what the caller found there. The caller cannot use it, or wants a newer value.
	Seen Found

	// Renew leaves in place what was seen until the fill.
	Renew bool

	// WithTTL also asks for the TTL of the value that appears while the caller waits.
	WithTTL bool

	// Spent is how much of Options.Timeout the caller has spent on reading the key. The claim may take the rest. With several Wants the
	// first one's Spent counts.
	Spent time.Duration

	// Until is how long the caller waits for a holder that is alive. After that, the first sign of life ends the wait: a lease that the
	// holder has extended. Zero: until the wait's context ends.
	Until time.Time

	// Reading is called before each request whose answer the caller may receive as Found. May be nil.
	Reading func()
}

func (w *Want) reading() {
	if w.Reading != nil {
		w.Reading()
	}
}

// Standing says how a caller stands with a key, and so what it does next.
type Standing uint8

const (
	Mine    Standing = iota // Claim is the caller's: load and fill
	Theirs                  // somebody else loads it: wait, or ask again after a lease's life
	Changed                 // the key holds Found by now, which may be another caller's lease
	Void                    // a tombstone: load, and do not store
	Resting                 // a renewal failed lately, and nobody tries again yet
	Late                    // the context of the wait ended first: Err is its cause. Or Want.Until has passed, and the holder lives: Err is nil
	Ruined                  // the load that the caller waited for has failed: Failure says how
	Down                    // Redis could not be asked: Err says why. If there is a Claim, release it
)

// Acquired is the answer to a Want.
type Acquired struct {
	Claimed
	Standing Standing
	Waited   time.Duration // for another caller's load; zero if the caller did not wait

	// Voided reports that the lease the caller waited for ended before its time although its holder neither failed nor gave up. Then the key
	// was deleted, or the result of the load is of no use to the caller. If Voided is false and there is no value, the holder has died.
	Voided bool
}

// Acquire gets the caller the right to load w.Key. Otherwise it waits, on the context wait, until the holder has finished or died. For a
// renewal it waits for at most the life of a lease, and then answers Theirs. usable ends the wait when a plain value that is being loaded
// is good enough; a nil usable accepts any value.
func (g *Guard) Acquire(ctx, wait context.Context, w Want, usable func(Found) bool) Acquired {
	switch w.Seen.State {
	case Held:
		return Acquired{Standing: Void}
	case Loading:
	default:
		a := g.Ask(ctx, []Want{w})[0]
		if a.Standing != Theirs {
			return a
		}
		if !w.Renew {
			w.Seen = a.Found
		}
	}
	return g.Outwait(ctx, wait, w, usable)
}

// Outwait waits as Acquire does. w.Seen is another caller's lease, or the value that another caller is renewing.
func (g *Guard) Outwait(ctx, wait context.Context, w Want, usable func(Found) bool) Acquired {
	begun := time.Now()
	var a Acquired
	if w.Renew {
		a = g.awaitRenewal(wait, w)
	} else {
		a = g.awaitHolder(ctx, wait, w, usable)
	}
	a.Waited = max(time.Since(begun), 1)
	return a
}

// awaitRenewal waits until the value that was seen has been replaced. A renewal that fails leaves it in place.
func (g *Guard) awaitRenewal(wait context.Context, w Want) Acquired {
	while, cancel := context.WithTimeout(wait, TTL)
	defer cancel()
	seen := string(w.Seen.Raw)
	f, err := g.await(while, w, func(now Found, _ time.Time, _ time.Duration) bool {
		return now.State != Present || string(now.Raw) != seen
	})
	a := ended(wait, f, err)
	if a.Standing == Down && while.Err() != nil {
		a.Standing, a.Err = Theirs, nil
	}
	return a
}

// awaitHolder waits until a lease is gone or belongs to another caller. It takes over a lease that cannot end.
func (g *Guard) awaitHolder(ctx, wait context.Context, w Want, usable func(Found) bool) Acquired {
	h := holder{want: w, usable: usable}
	f, err := g.await(wait, w, h.over)
	return g.after(ctx, wait, &h, f, err)
}

// holder is another caller's lease, as the answers show it to a caller that waits for its end.
//
// Redis ends a lease that nobody keeps, by its own clock. If that clock was set back, a lease has more time left than any holder gives it. The
// next beat of a live holder corrects that, so a lease that is still wrong after three beats has no holder.
type holder struct {
	want   Want
	usable func(Found) bool // nil: any value is
	since  time.Time        // when the lease first had too much time left; zero: it does not
	lives  time.Time        // until then the lease exists unless somebody removes it

	dead, ruined, voided bool
	late                 bool // it was extended after Want.Until
}

// over reports whether the wait is over, by an answer to a request that was sent at asked.
func (h *holder) over(now Found, asked time.Time, left time.Duration) bool {
	seen := &h.want.Seen
	same := string(now.Lease) == string(seen.Lease)
	if h.ruined = now.Failure.Is() && !now.Failure.GivenUp && now.Failure.ID != seen.Failure.ID && now.State != Present; h.ruined {
		return true
	}
	if !same {
		h.voided = time.Now().Before(h.lives) && now.Failure.ID != seen.Holder()
	} else if left > 0 {
		h.lives = asked.Add(left)
		h.late = !h.want.Until.IsZero() && h.lives.Add(-TTL).After(h.want.Until) // it was extended after that
	}
	if !same || now.State == Present && (h.usable == nil || h.usable(now)) {
		return true
	}
	switch {
	case left >= 0 && left <= 2*TTL || left == Gone:
		h.since = time.Time{}
		return h.late
	case h.since.IsZero():
		h.since = time.Now()
	default:
		h.dead = time.Since(h.since) > 3*Beat
	}
	return h.dead
}

// after returns how the wait for h ended. It takes over what belongs to nobody.
func (g *Guard) after(ctx, wait context.Context, h *holder, f Found, err error) Acquired {
	a := ended(wait, f, err)
	a.Voided = h.voided
	if h.ruined && a.Standing == Changed {
		a.Standing = Ruined
	}
	if h.late && a.Standing == Changed && string(f.Lease) == string(h.want.Seen.Lease) && !h.dead {
		a.Standing = Late
	}
	if !h.dead || a.Standing != Changed {
		return a
	}
	c := g.newClaim(h.want)
	mine, err := g.nodes.Run1(ctx, swapCall(c.lock, f.Lease, len(f.Lease), c.token, TTL))
	switch {
	case err != nil:
		return Acquired{Standing: Down, Claimed: Claimed{Claim: c, Err: err}}
	case mine:
		c.seen = Found{} // a plain value keeps what was seen: it stands beside its lease
		if g.plain {
			c.seen = f
		}
		return Acquired{Standing: Mine, Claimed: Claimed{Claim: c}}
	}
	return a
}

// ended returns how a wait ended.
func ended(wait context.Context, f Found, err error) Acquired {
	a := Acquired{Standing: Down, Claimed: Claimed{Found: f, Err: err}}
	switch {
	case err == nil:
		a.Standing = Changed
	case wait.Err() != nil:
		a.Standing, a.Err = Late, context.Cause(wait)
	}
	return a
}

// Ask requests the right to load each of several keys. It does not wait for other callers.
func (g *Guard) Ask(ctx context.Context, wants []Want) []Acquired {
	acquired := make([]Acquired, len(wants))
	for i, a := range g.claim(ctx, wants) {
		acquired[i] = Acquired{Claimed: a, Standing: a.standing(wants[i].Renew)}
	}
	return acquired
}

func (a Claimed) standing(renew bool) Standing {
	switch {
	case a.Err != nil:
		return Down
	case a.Claim != nil:
		return Mine
	case a.State == Held && renew:
		return Resting
	case a.State == Held:
		return Void
	case a.State == Loading || renew: // what the lock of a renewal holds is never a value
		return Theirs
	}
	return Changed
}
