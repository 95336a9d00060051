package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/mayflycache/mayfly/bench/lab"
)

// access makes a policy of a cache: read, and store on a miss. settle makes a cache that works in the background keep its
// size at every step.
type access struct {
	cache
	names []string
	value []byte
}

func (a access) Access(key uint32) bool {
	if _, ok := a.get(a.names[key]); ok {
		return true
	}
	a.set(a.names[key], a.value, time.Hour)
	a.settle()
	return false
}

// A candidate decides what to keep, at a capacity.
type candidate struct {
	name string
	make func(entries int) lab.Policy
}

// ratios measures hit ratios of the caches, and of the policies that were considered.
func ratios(caches, policies io.Writer, o settings) {
	names := make([]string, keys+requests)
	for i := range names {
		names[i] = fmt.Sprintf("%08d", i)
	}
	value := hourLong()
	of := func(make func(int) cache) func(int) lab.Policy {
		return func(n int) lab.Policy { return access{make(n), names, value} }
	}
	all := []candidate{
		{us, of(newMayfly)},
		{rival, of(newSteadyOtter)},
		{"theine", of(newTheine)},
		{"LRU", func(n int) lab.Policy { return lab.NewLRU(n) }},
		{"ristretto", of(newRistretto)},
		{"CLOCK", func(n int) lab.Policy { return lab.NewClock(n) }},
		{"SIEVE", func(n int) lab.Policy { return lab.NewSieve(n) }},
		{"S3-FIFO", func(n int) lab.Policy { return lab.NewS3FIFO(n) }},
		{"W-TinyLFU, window 1 %", func(n int) lab.Policy { return lab.NewTinyLFU(n, 0.01) }},
		{"20 %", func(n int) lab.Policy { return lab.NewTinyLFU(n, 0.2) }},
		{"80 %", func(n int) lab.Policy { return lab.NewTinyLFU(n, 0.8) }},
		{"fed by the writer, 1 %, margin 0", func(n int) lab.Policy { return lab.NewLazy(n, 0.01, 0) }},
		{"1 %, margin 1", func(n int) lab.Policy { return lab.NewLazy(n, 0.01, 1) }},
		{"80 %, margin 1", func(n int) lab.Policy { return lab.NewLazy(n, 0.8, 1) }},
	}
	const firstBare = 5 // those before it are what one can use; LRU is golang-lru's policy too

	fmt.Fprintf(caches, `Hits per hundred requests, %d requests of %d keys; the loop is for 10 %% more keys than fit. The bound is the larger of
the best of otter and theine minus 1, and LRU minus 3. otter runs its maintenance on the calling goroutine and theine
is waited for after each miss: left alone, both hold more than their capacity in so tight a loop.

`, requests, keys)
	fmt.Fprint(policies, `Hits per hundred requests. The first column is the store itself, the others are bare policies; "fed by the writer" is the
store's without what adapts it.

`)
	upper, lower := all[:firstBare], append(all[:1:1], all[firstBare:]...)
	header(caches, true, upper)
	header(policies, false, lower)
	for _, tr := range traces {
		for _, entries := range []int{keys / 1000, keys / 100, keys / 20, keys / 4} {
			seq := tr.make(entries)
			if o.quick {
				seq = seq[:len(seq)/20]
			}
			got := hits(all, seq, entries)
			bound := max(got[1]-1, got[2]-1, got[3]-3)
			missed := ""
			if got[0] < bound {
				missed = " (missed)"
			}
			fmt.Fprintf(caches, "| %s | %d | %.1f%s |%s\n", tr.name, entries, bound, missed, cells(got[:firstBare]))
			fmt.Fprintf(policies, "| %s | %d |%s\n", tr.name, entries, cells(append(got[:1:1], got[firstBare:]...)))
		}
	}
}

// hourLong is a value that ends in an hour.
func hourLong() []byte {
	return binary.LittleEndian.AppendUint32(nil, uint32(time.Hour.Milliseconds()))
}

func header(w io.Writer, bound bool, cs []candidate) {
	names, line := "| trace | entries |", "| --- | --- |"
	if bound {
		names, line = names+" bound |", line+" --- |"
	}
	for _, c := range cs {
		names, line = names+" "+c.name+" |", line+" --- |"
	}
	fmt.Fprintf(w, "%s\n%s\n", names, line)
}

func cells(figures []float64) (row string) {
	for _, f := range figures {
		row += fmt.Sprintf(" %.1f |", f)
	}
	return row
}

// hits returns how many in a hundred requests each candidate of that many entries answers.
func hits(cs []candidate, seq []uint32, entries int) []float64 {
	got := make([]float64, len(cs))
	var wg sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, c := range cs {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			p := c.make(entries)
			n := 0
			for _, k := range seq {
				if p.Access(k) {
					n++
				}
			}
			got[i] = 100 * float64(n) / float64(len(seq))
			if a, ok := p.(access); ok {
				a.close()
			}
		})
	}
	wg.Wait()
	return got
}
