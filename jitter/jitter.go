// Package jitter moves a TTL by a random share, so that keys written together do not expire together.
//
// A thousand entries cached in the same second with the same TTL cause a thousand loads in the same second an hour later. [Default] spreads
// them over plus or minus 10 %, uniformly, as the TTL guide does:
//
//	ns := mayfly.Namespace[int64, User]{ ..., TTL: time.Hour, Jitter: jitter.Default}
//
// The package is pure: TTL in, TTL out. It reads no clock and knows no Redis; the random draw is an argument of [Spread.At].
package jitter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// Spread says how far a TTL may be moved, and within which bounds. The zero value moves nothing. It is a value: you can copy it, compare
// its fields and share it between goroutines.
type Spread struct {
	// Fraction is the largest share of the TTL by which the result may differ from it, in either direction: 0.10 is plus or minus 10 %. It
	// must be in [0,1); zero moves nothing.
	Fraction float64

	// Floor and Ceiling bound the result after it was moved; zero means no bound.
	Floor, Ceiling time.Duration

	draw func() float64 // nil: the process's own random source
}

// Default is the guide's plus or minus 10 %.
var Default = Spread{Fraction: 0.10}

// IsZero reports whether s leaves every TTL as it is: it has no fraction and no bounds.
func (s Spread) IsZero() bool { return s.Fraction == 0 && s.Floor == 0 && s.Ceiling == 0 }

// Validate returns an error that names a field with a value that cannot be used. Every constructor that takes a Spread calls it.
func (s Spread) Validate() error {
	switch {
	case !(s.Fraction >= 0 && s.Fraction < 1): // written so that NaN fails too
		return fmt.Errorf("Jitter.Fraction must be in [0,1), got %v", s.Fraction)
	case s.Floor < 0:
		return fmt.Errorf("Jitter.Floor must not be negative, got %v", s.Floor)
	case s.Ceiling < 0 || s.Ceiling > 0 && s.Ceiling < time.Millisecond:
		return fmt.Errorf("Jitter.Ceiling must be zero or at least 1ms, got %v", s.Ceiling)
	case s.Ceiling > 0 && s.Floor > s.Ceiling:
		return fmt.Errorf("Jitter.Floor must not exceed Jitter.Ceiling, got %v and %v", s.Floor, s.Ceiling)
	}
	return nil
}

// TTL returns ttl moved by a fresh random share. It is safe for concurrent use.
func (s Spread) TTL(ttl time.Duration) time.Duration {
	if s.Fraction == 0 {
		return s.At(ttl, 0)
	}
	if s.draw != nil {
		return s.At(ttl, s.draw())
	}
	return s.At(ttl, rand.Float64())
}

// At returns ttl moved by the share that draw, in [0,1), selects: 0 gives the shortest TTL, 0.5 gives ttl itself. The result is rounded
// down to whole milliseconds, the unit Redis counts in. It is never below 1 ms, never overflows, and lies within Floor and Ceiling to the
// millisecond. A ttl that is not positive comes back as the smallest one: rejecting it is up to whoever took it from a user.
func (s Spread) At(ttl time.Duration, draw float64) time.Duration {
	moved := ttl
	if s.Fraction != 0 {
		f := float64(ttl) * (1 - s.Fraction + 2*s.Fraction*draw)
		if f >= math.MaxInt64 { // float64 cannot hold MaxInt64: comparing before converting is the only safe order
			moved = math.MaxInt64
		} else {
			moved = time.Duration(f)
		}
	}
	moved = max(moved, s.Floor)
	if s.Ceiling > 0 {
		moved = min(moved, s.Ceiling)
	}
	return max(moved.Truncate(time.Millisecond), time.Millisecond)
}

// Seeded returns the same Spread with its own random source, so that a test sees the same TTLs each time. It stays safe for concurrent use,
// but the order of the draws is then the order of the calls.
func (s Spread) Seeded(seed uint64) Spread {
	var mu sync.Mutex // guards r
	r := rand.New(rand.NewPCG(seed, seed))
	s.draw = func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64()
	}
	return s
}
