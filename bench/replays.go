package main

import (
	"compress/gzip"
	priority "container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mayflycache/mayfly/bench/lab"
)

// A recorded trace is a file of little-endian uint32 keys in the order of their requests, gzipped. The traces belong to others and are not part of
// this module: the ARC paper's set (oltp, p3, P2), the LIRS paper's (gli, loop, multi3, sprite), a ledger's vault (corda), block storage of
// virtual machines (w106, cloudphys), and two handmade ones that defeat frequency.
var recorded = []struct {
	name    string
	entries []int
}{
	{"oltp", []int{256, 1000, 2000}}, {"p3", []int{25_000, 100_000, 200_000}}, {"gli", []int{500, 1000, 2000}}, {"loop", []int{512}},
	{"corda", []int{2048}}, {"P2", []int{13_000}}, {"cloudphys", []int{9794}}, {"multi3", []int{745}}, {"sprite", []int{707}},
	{"w106", []int{1959}}, {"zigzag", []int{600}}, {"backf", []int{225}},
}

// replays measures hit ratios on recorded traces in o.traces.
func replays(w io.Writer, o settings) {
	fmt.Fprintf(w, "Hits per hundred requests. The optimum knows the future.\n\n| trace | entries | optimum | %s | %s | theine | LRU | %s and the best of the three |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
		us, rival, us)
	regret := make([]float64, 4)
	rows := 0
	for _, r := range recorded {
		seq, err := readTrace(filepath.Join(o.traces, r.name+".u32.gz"))
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(os.Stderr, "%v: left out\n", err)
			continue
		}
		must(0, err)
		for _, entries := range r.entries {
			got := hits(replayed(seq), seq, entries)
			best := optimum(seq, entries)
			fmt.Fprintf(w, "| %s | %d | %.1f |%s %+.1f |\n", r.name, entries, best, cells(got), got[0]-max(got[1], got[2], got[3]))
			rows++
			for i := range regret {
				regret[i] += best - got[i]
			}
		}
	}
	for i := range regret {
		regret[i] /= float64(max(rows, 1))
	}
	fmt.Fprintf(w, "| mean regret | | |%s |\n", cells(regret))
}

// replayed are the caches that are compared, for the keys of a trace.
func replayed(seq []uint32) []candidate {
	most := uint32(0)
	for _, k := range seq {
		most = max(most, k)
	}
	list := make([]string, most+1)
	for _, k := range seq {
		if list[k] == "" {
			list[k] = fmt.Sprintf("%08d", k)
		}
	}
	of := func(make func(int) cache) func(int) lab.Policy {
		return func(n int) lab.Policy { return access{make(n), list, hourLong()} }
	}
	return []candidate{{us, of(newMayfly)}, {rival, of(newSteadyOtter)}, {"theine", of(newTheine)}, {"LRU", func(n int) lab.Policy { return lab.NewLRU(n) }}}
}

func readTrace(path string) ([]uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	seq := make([]uint32, len(raw)/4)
	for i := range seq {
		seq[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return seq, nil
}

// optimum returns the hits per hundred of a cache that evicts the key whose next request is the farthest away (Belady).
func optimum(seq []uint32, entries int) float64 {
	const never = 1 << 31
	next := make([]int, len(seq)) // index of the next request for the same key
	last := map[uint32]int{}
	for i := len(seq) - 1; i >= 0; i-- {
		next[i] = never
		if at, ok := last[seq[i]]; ok {
			next[i] = at
		}
		last[seq[i]] = i
	}
	held := map[uint32]int{} // by key: index of its next request
	var far farthest
	n := 0
	for i, k := range seq {
		if _, ok := held[k]; ok {
			n++
		} else if len(held) == entries {
			for held[far[0].key] != far[0].next { // requested meanwhile
				priority.Pop(&far)
			}
			delete(held, priority.Pop(&far).(future).key)
		}
		held[k] = next[i]
		priority.Push(&far, future{k, next[i]})
	}
	return 100 * float64(n) / float64(len(seq))
}

type future struct {
	key  uint32
	next int
}

type farthest []future

func (f farthest) Len() int           { return len(f) }
func (f farthest) Less(i, j int) bool { return f[i].next > f[j].next }
func (f farthest) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *farthest) Push(x any)        { *f = append(*f, x.(future)) }
func (f *farthest) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}
