package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A load is what callers do: a mix of reads and writes of existing keys, and the number of simultaneous
// callers.
type load struct {
	name    string
	writes  int
	callers int
	order   []uint32 // the order in which keys are read
	bound   float64  // of our CPU time over the rival's; 0: none was set
}

// costs measures CPU time per operation. Every round makes every cache anew, one after the other. The published
// figures are medians over the rounds: of the time, and of its ratio to the rival's time in the same round.
func costs(w io.Writer, o settings) {
	const resident = 65_536
	names := keyNames(resident)
	order := make([]uint32, 1<<20)
	z := newZipf(rand.New(rand.NewPCG(1, 2)), 1.1, resident)
	for i := range order {
		order[i] = z.next()
	}
	same := make([]uint32, len(order))
	ops := o.scale(1_000_000, 200_000)
	rounds := o.scale(7, 1)

	fmt.Fprintf(w, `%d keys of %d bytes, Zipf 1.1, a TTL of 1 h on every entry, room for all. CPU time per operation (getrusage: the
collector and background goroutines included), median of %d interleaved rounds of %d operations; in brackets the median
ratio to %s in the same round. GOMAXPROCS beyond the number of processors shows what waiting for a lock costs.

`, resident, len(names[0]), rounds, ops, rival)
	fmt.Fprint(w, "| load | bound |")
	for _, c := range contestants {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprintf(w, " allocs/op, %s |\n| --- | --- |", us)
	for range contestants {
		fmt.Fprint(w, " --- |")
	}
	fmt.Fprintln(w, " --- |")
	for _, procs := range o.procs {
		old := runtime.GOMAXPROCS(procs)
		for _, l := range []load{
			{"read hit, serial", 0, 1, order, 0.8},
			{"read hit, parallel", 0, procs, order, 0.8},
			{"75/25 mix, serial", 25, 1, order, 0.8},
			{"75/25 mix, parallel", 25, procs, order, 0.8},
			{"one hot key, parallel", 0, procs, same, 0},
		} {
			if l.callers == 1 && procs != o.procs[0] || l.callers > 1 && procs == 1 {
				continue
			}
			cpu := make([][]float64, len(contestants))
			var allocs float64
			for range rounds {
				for i, c := range contestants {
					ns, a := oneCost(c, names, l, ops)
					cpu[i] = append(cpu[i], ns)
					if c.name == us {
						allocs = a
					}
				}
			}
			bound := "-"
			if l.bound > 0 {
				bound = fmt.Sprintf("%.1f", l.bound)
			}
			fmt.Fprintf(w, "| %s, GOMAXPROCS %d | %s |", l.name, procs, bound)
			for i := range contestants {
				ratios := make([]float64, rounds)
				for r := range ratios {
					ratios[r] = cpu[i][r] / cpu[1][r]
				}
				missed := ""
				if i == 0 && l.bound > 0 && median(ratios) > l.bound {
					missed = ", missed"
				}
				fmt.Fprintf(w, " %.0f ns (%.2f%s) |", median(cpu[i]), median(ratios), missed)
			}
			fmt.Fprintf(w, " %.2f |\n", allocs)
		}
		runtime.GOMAXPROCS(old)
	}
}

func oneCost(c contestant, names []string, l load, ops int) (ns, allocs float64) {
	cache := c.make(2 * len(names)) // room for all, however the cache divides it
	defer cache.close()
	value := make([]byte, 100)
	binary.LittleEndian.PutUint32(value, uint32(time.Hour.Milliseconds()))
	for i, k := range names {
		cache.set(k, value, time.Hour)
		if i%1000 == 0 {
			cache.settle()
		}
	}
	cache.settle()
	order := l.order
	run := func(n, start int) (missed int) {
		for i := start; i < start+n; i++ {
			k := names[order[i&(len(order)-1)]]
			if l.writes > 0 && i%4 == 0 {
				cache.set(k, value, time.Hour)
			} else if _, ok := cache.get(k); !ok {
				missed++
			}
		}
		return missed
	}
	run(ops/10, 0)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime()
	var wg sync.WaitGroup
	for g := range l.callers {
		wg.Go(func() { run(ops/l.callers, g*len(order)/l.callers) })
	}
	wg.Wait()
	cache.settle()
	spent := cpuTime() - began
	runtime.ReadMemStats(&after)
	return float64(spent.Nanoseconds()) / float64(ops), float64(after.Mallocs-before.Mallocs) / float64(ops)
}

// keyNames are keys of 21 bytes.
func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("user:%016d", i)
	}
	return names
}

// cpuTime is what the process has spent of all processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
