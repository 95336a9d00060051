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
}

// Standing says how a caller stands to a key, and so what it does next.
type Standing uint8

const (
	Mine    Standing = iota // Claim is the caller's: load, and fill
	Theirs                  // somebody else loads it: wait, or ask again after a lease's life
	Changed                 // Found is there by now
	Void                    // a tombstone: load, and do not store
	Resting                 // a renewal failed lately, and nobody tries again yet
	Late                    // the wait's context ended first: Err is its cause
	Down                    // Redis could not be asked: Err says why. A Claim, if there is one, is to be released
)

// Acquired is the answer to a Want.
type Acquired struct {
	Claimed
	Standing Standing
	Waited   time.Duration // for somebody else's load; zero if the caller did not wait
}

// Acquire gets the caller the right to load w.Key, or waits, on the context wait, until the holder has finished or died. For a renewal
// it waits for a lease's life at most, and then answers Theirs. usable ends the wait for a plain value that is good enough although
// it is being loaded; nil takes any.
func (g *Guard) Acquire(ctx, wait context.Context, w Want, usable func(Found) bool) Acquired {
	switch w.Seen.State {
	case Held:
		return Acquired{Standing: Void}
	case Loading:
	default:
		if a := g.Ask(ctx, []Want{w})[0]; a.Standing != Theirs {
			return a
		}
	}
	begun, while := time.Now(), wait
	until := func(now Found) bool {
		return now.State != Loading && !(now.Leased && usable != nil && !usable(now))
	}
	if w.Renew {
		var cancel context.CancelFunc
		while, cancel = context.WithTimeout(wait, TTL)
		defer cancel()
		seen := string(w.Seen.Raw) // which a renewal that fails leaves as it is
		until = func(now Found) bool { return now.State != Present || string(now.Raw) != seen }
	}
	f, err := g.Await(while, w.Key, w.WithTTL, until)
	a := Acquired{Claimed: Claimed{Found: f, Err: err}, Waited: max(time.Since(begun), 1)}
	switch {
	case err == nil:
		a.Standing = Changed
	case wait.Err() != nil:
		a.Standing, a.Err = Late, context.Cause(wait)
	case while.Err() != nil:
		a.Standing, a.Err = Theirs, nil
	default:
		a.Standing = Down
	}
	return a
}

// Ask asks for the right to load each of several keys, and waits for nobody.
func (g *Guard) Ask(ctx context.Context, wants []Want) []Acquired {
	claims := make([]*Claim, len(wants))
	for i, w := range wants {
		claims[i] = g.newClaim(w)
	}
	acquired := make([]Acquired, len(wants))
	for i, a := range g.claim(ctx, claims) {
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
