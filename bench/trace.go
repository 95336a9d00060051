package main

import (
	"math"
	"math/rand/v2"
)

// A trace is a sequence of requests for keys 0..keys-1, the same at every run.
type trace struct {
	name string
	make func(capacity int) []uint32
}

// keys is the number of distinct keys the shares of the cache sizes refer to.
const keys = 100_000

// requests is the length of a trace.
const requests = 2_000_000

var traces = []trace{
	{"Zipf 1.01", func(int) []uint32 { return zipfTrace(1.01) }},
	{"Zipf 1.1", func(int) []uint32 { return zipfTrace(1.1) }},
	{"loop, 10 % larger", loopTrace},
	{"Zipf 1.1 and scans", func(int) []uint32 { return scanTrace() }},
	{"recency walk", func(int) []uint32 { return walkTrace() }},
	{"recency stack", stackTrace},
	{"Zipf 1.1, drifting", func(int) []uint32 { return driftTrace() }},
	{"walk, loop, Zipf", changeTrace},
}

// zipfTrace draws keys by popularity, the same popularity all the time.
func zipfTrace(s float64) []uint32 {
	z := newZipf(rand.New(rand.NewPCG(1, 2)), s, keys)
	t := make([]uint32, requests)
	for i := range t {
		t[i] = z.next()
	}
	return t
}

// loopTrace asks for 1.1 times as many keys as the cache holds, round and round.
func loopTrace(capacity int) []uint32 {
	n := max(capacity+capacity/10, capacity+2)
	t := make([]uint32, max(requests/4, 20*n))
	for i := range t {
		t[i] = uint32(i % n)
	}
	return t
}

// scanTrace is Zipf 1.1 polluted by scans: one request in two, in runs of
// 1,000, is for a key that is asked for once.
func scanTrace() []uint32 {
	z := newZipf(rand.New(rand.NewPCG(3, 4)), 1.1, keys)
	t := make([]uint32, requests)
	once := uint32(keys)
	for i := range t {
		if i/1000%2 == 1 {
			t[i] = once
			once++
		} else {
			t[i] = z.next()
		}
	}
	return t
}

// walkTrace is a random walk over the key space: what was near lately is asked for
// next, and how often a key was asked for says nothing.
func walkTrace() []uint32 {
	r := rand.New(rand.NewPCG(5, 6))
	t := make([]uint32, requests)
	at := 0.0
	for i := range t {
		at += r.NormFloat64() * 10
		t[i] = uint32(math.Mod(math.Mod(at, keys)+keys, keys))
	}
	return t
}

// stackTrace asks again for what was asked for lately, at a reuse distance
// around the size of the cache, and for a new key one time in twenty.
func stackTrace(capacity int) []uint32 {
	r := rand.New(rand.NewPCG(7, 8))
	t := make([]uint32, requests)
	fresh := uint32(0)
	for i := range t {
		if i == 0 || r.IntN(20) == 0 {
			t[i] = fresh
			fresh++
			continue
		}
		back := int(r.ExpFloat64() * float64(capacity) / 20)
		t[i] = uint32(max(0, int(fresh)-1-back))
	}
	return t
}

// zipf draws from 0..n-1 with P(k) proportional to 1/(k+1)^s, and hides the
// popularity of a key from its number.
type zipf struct {
	z *rand.Zipf
	p []uint32
}

func newZipf(r *rand.Rand, s float64, n uint32) *zipf {
	p := make([]uint32, n)
	for i, k := range r.Perm(int(n)) {
		p[i] = uint32(k)
	}
	return &zipf{rand.NewZipf(r, s, 1, uint64(n-1)), p}
}

func (z *zipf) next() uint32 { return z.p[z.z.Uint64()] }

// driftTrace is Zipf 1.1 whose popular keys change: every 50,000 requests the
// key of each rank moves on.
func driftTrace() []uint32 {
	z := newZipf(rand.New(rand.NewPCG(9, 10)), 1.1, keys)
	t := make([]uint32, requests)
	for i := range t {
		t[i] = (z.next() + uint32(i/50_000)*7919) % keys
	}
	return t
}

// changeTrace is a walk, then a loop, then Zipf 1.1, then all again.
func changeTrace(capacity int) []uint32 {
	parts := [][]uint32{walkTrace(), loopTrace(capacity), zipfTrace(1.1)}
	t := make([]uint32, requests)
	for i := range t {
		p := parts[i/(requests/6)%3]
		t[i] = p[i%len(p)] + uint32(i/(requests/6)%3*keys)
	}
	return t
}
