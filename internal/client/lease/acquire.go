package lease

import (
	"context"
	"time"
)

// Want is what a caller needs of one key.
type Want struct {
	Key string

	// Seen is what the caller found there and cannot use, or wants a newer one of.
	Seen Found

	// Renew leaves what was seen in place until the fill.
	Renew bool

	// WithTTL asks for the time left of what comes while the caller waits.
	WithTTL bool

	// Spent is how much of Options.Timeout the caller has spent on reading it: the claim has the rest. Of several the first one's counts.
	Spent time.Duration

	// Reading is called before each question whose answer the caller may be given as Found. May be nil.
	Reading func()
}

func (w *Want) reading() {
	if w.Reading != nil {
		w.Reading()
	}
}

// Standing says how a caller stands to a key, and so what it does next.
type Standing uint8

const (
	Mine    Standing = iota // Claim is the caller's: load, and fill
	Theirs                  // somebody else loads it: wait, or ask again after a lease's life
	Changed                 // Found is there by now: it may be another's lease
	Void                    // a tombstone: load, and do not store
	Resting                 // a renewal failed lately, and nobody tries again yet
	Late                    // the wait's context ended first: Err is its cause
	Ruined                  // the load that was waited for has failed: Failure says how
	Down                    // Redis could not be asked: Err says why. A Claim, if there is one, is to be released
)

// Acquired is the answer to a Want.
type Acquired struct {
	Claimed
	Standing Standing
	Waited   time.Duration // for somebody else's load; zero if the caller did not wait

	// Voided says that the lease that was waited for ended before its time, and that its holder neither failed nor gave up: the key was
	// deleted, or what came of the load is of no use to the caller. Else, where there is no value, the holder has died.
	Voided bool
}

// Acquire gets the caller the right to load w.Key, or waits, on the context wait, until one holder has finished or died. For a
// renewal it waits for a lease's life at most, and then answers Theirs. usable ends the wait for a plain value that is good
// enough although it is being loaded; nil takes any.
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

// Outwait waits as Acquire does, where w.Seen is somebody's lease, or what somebody renews.
func (g *Guard) Outwait(ctx, wait context.Context, w Want, usable func(Found) bool) Acquired {
	begun := time.Now()
	var a Acquired
	if w.Renew {
		a = g.awaitRenewal(wait, w)
	} else {
		a = g.awaitHolder(ctx, wait, w, string(w.Seen.Lease), usable)
	}
	a.Waited = max(time.Since(begun), 1)
	return a
}

// awaitRenewal waits until what was seen has been replaced: a renewal that fails leaves it as it is.
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

// awaitHolder waits until a lease is gone, or somebody else's. One that cannot end is taken over. Redis ends a lease that is not kept,
// by its own clock; where that was set back, a lease has more left than any holder gives it. The next beat of a holder that lives
// puts that right, so after three of them there is none.
func (g *Guard) awaitHolder(ctx, wait context.Context, w Want, lease string, usable func(Found) bool) Acquired {
	var since time.Time // when the lease was first seen to have too much left; zero: it has not
	var lives time.Time // until then the lease is there unless somebody removes it
	dead, ruined, voided := false, false, false
	f, err := g.await(wait, w, func(now Found, asked time.Time, left time.Duration) bool {
		if ruined = now.Failure.Is() && !now.Failure.GivenUp && now.Failure.ID != w.Seen.Failure.ID && now.State != Present; ruined {
			return true
		}
		if string(now.Lease) != lease {
			voided = time.Now().Before(lives) && now.Failure.ID != w.Seen.Holder()
		} else if left > 0 {
			lives = asked.Add(left)
		}
		if string(now.Lease) != lease || now.State == Present && (usable == nil || usable(now)) {
			return true
		}
		switch {
		case left >= 0 && left <= 2*TTL || left == Gone:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		default:
			dead = time.Since(since) > 3*Beat
		}
		return dead
	})
	a := ended(wait, f, err)
	a.Voided = voided
	if ruined && a.Standing == Changed {
		a.Standing = Ruined
	}
	if !dead || a.Standing != Changed {
		return a
	}
	c := g.newClaim(w)
	mine, err := g.nodes.Run1(ctx, swapCall(c.lock, f.Lease, len(f.Lease), c.token, TTL))
	switch {
	case err != nil:
		return Acquired{Standing: Down, Claimed: Claimed{Claim: c, Err: err}}
	case mine:
		c.seen = Found{} // but for a plain value, which stands beside its lease
		if g.plain {
			c.seen = f
		}
		return Acquired{Standing: Mine, Claimed: Claimed{Claim: c}}
	}
	return a
}

// ended is how a wait ended.
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

// Ask asks for the right to load each of several keys, and waits for nobody.
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
	case a.State == Loading || renew: // whatever the lock of a renewal holds, it is no value
		return Theirs
	}
	return Changed
}
