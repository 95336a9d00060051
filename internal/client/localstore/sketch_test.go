package localstore

import (
	"math/rand/v2"
	"testing"
)

func TestSketchIsNeverTooLow(t *testing.T) {
	var k sketch
	k.grow(1000)
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[uint32]int{}
	for range 4000 { // fewer than after which it forgets
		h := r.Uint32N(700) * 0x9e3779b1
		k.add(h)
		counts[h]++
	}
	tooHigh := 0
	for h, n := range counts {
		got := k.estimate(h)
		if got < min(n, 15) {
			t.Errorf("%d was seen %d times, the estimate is %d", h, n, got)
		}
		if got > min(n, 15) {
			tooHigh++
		}
	}
	if tooHigh > len(counts)/100 {
		t.Errorf("%d of %d estimates are too high", tooHigh, len(counts))
	}
}

func TestSketchKeepsItsEstimatesWhenItGrows(t *testing.T) {
	var k sketch
	k.grow(10)
	for h := range uint32(8) {
		for range h {
			k.add(h)
		}
	}
	var before [8]int
	for h := range before {
		before[h] = k.estimate(uint32(h))
	}
	k.grow(5000)
	for h, want := range before {
		if got := k.estimate(uint32(h)); got != want {
			t.Errorf("%d: %d, was %d", h, got, want)
		}
	}
}

func TestSketchForgetsHalf(t *testing.T) {
	var k sketch
	k.grow(8)
	for range 12 {
		k.add(1)
	}
	for h := uint32(2); k.seen > 12; h++ {
		k.add(h)
	}
	for h := uint32(2); ; h++ {
		seen := k.seen
		if k.add(h); k.seen < seen {
			break
		}
	}
	if got := k.estimate(1); got < 6 || got > 9 {
		t.Errorf("12 became %d", got)
	}
}
