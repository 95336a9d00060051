package proxy

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Odds say what happens to requests at random: each is a share from 0 to 1, and together they are at most 1. What happens to the n-th GET
// depends only on the seed and on n, whatever other commands come in between.
type Odds struct {
	Delay     float64 // it arrives later, and is answered
	Late      float64 // its client is cut at once, and it arrives later
	CutBefore float64 // like the methods of Proxy
	CutAfter  float64
	DropReply float64
	Truncate  float64 // in the middle of the reply

	DelayReply float64 // it is executed at once, and the reply comes later

	// Most is the longest delay, of a delayed and of a late request. Zero is 20 ms.
	Most time.Duration

	// Of has the odds of single commands, in lower case, which replace these. Their Most is not used.
	Of map[string]Odds
}

// random draws the random faults.
type random struct {
	seed  uint64
	odds  Odds
	count map[string]uint64 // requests by command
	drawn int               // faults
}

// Random applies random faults from now on, to requests that meet no other fault, except those by which clients introduce themselves. A
// failing test shows the seed; zero draws one. Zero odds end it.
func (p *Proxy) Random(seed uint64, o Odds) {
	if seed == 0 {
		seed = rand.Uint64()
	}
	if o.Most == 0 {
		o.Most = 20 * time.Millisecond
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.random = &random{seed: seed, odds: o, count: map[string]uint64{}}
}

func (p *Proxy) seed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.random == nil {
		return ""
	}
	return fmt.Sprintf("\nthe seed was %d; %d faults by chance", p.random.seed, p.random.drawn)
}

// draw returns the fault for the next request of this command, nil for none.
func (r *random) draw(command string) *Fault {
	h := fnv.New64a()
	h.Write([]byte(command))
	r.count[command]++
	g := rand.New(rand.NewPCG(r.seed, h.Sum64()+r.count[command]))
	delay := time.Duration(1 + g.Int64N(int64(r.odds.Most)))
	x, o := g.Float64(), r.odds
	if its, ok := o.Of[command]; ok {
		o = its
	}
	for _, one := range []struct {
		share float64
		does  deed
	}{{o.Delay, hold}, {o.Late, late}, {o.CutBefore, cutBefore}, {o.CutAfter, cutAfter}, {o.DropReply, dropReply}, {o.Truncate, truncate}, {o.DelayReply, holdReply}} {
		if x >= one.share {
			x -= one.share
			continue
		}
		r.drawn++
		f := &Fault{does: one.does, bytes: 1}
		if one.does == hold || one.does == late || one.does == holdReply {
			f.delay = delay
		}
		return f
	}
	return nil
}
