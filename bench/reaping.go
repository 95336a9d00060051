package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
)

// reaping measures how long dead entries stay in memory: many keys with TTLs of 1 to 10 s, nobody reads, and a steady
// trickle of writes to other keys.
func reaping(w io.Writer, o settings) {
	total := o.scale(1_000_000, 50_000)
	const perSecond, others = 1000, 1000
	const step = 100 * time.Millisecond
	value := func(ttl time.Duration) []byte {
		v := make([]byte, 16)
		binary.LittleEndian.PutUint32(v, uint32(ttl.Milliseconds()))
		return v
	}
	names := keyNames(total + others)
	fmt.Fprintf(w, `%d keys with a TTL uniform in 1..10 s, nobody reading, %d writes a second to other keys, looked at every 100 ms.
"Of the bound" is the largest number of dead keys held as a share of the documented max(25 %% of those held, writes per
second / 4): at most 1 keeps it. Insert is CPU time for all keys, best of three, and its ratio to %s. Reaping is the
CPU time of the process from the last insert on, trickle included, as a share of one core.

`, total, perSecond, rival)
	fmt.Fprint(w, "| cache | insert | most dead | of the bound | mean overdue | all reclaimed after | reaping |\n")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- |")
	inserts := map[string]time.Duration{}
	rng := rand.New(rand.NewPCG(11, 12))
	for _, c := range contestants {
		inserts[c.name] = time.Hour
	}
	for range o.scale(3, 1) {
		for _, c := range contestants {
			cache := c.make(2 * total)
			runtime.GC()
			began := cpuTime()
			for i := range total {
				ttl := time.Hour + time.Duration(rng.IntN(9000))*time.Millisecond
				cache.set(names[i], value(ttl), ttl)
			}
			cache.settle()
			inserts[c.name] = min(inserts[c.name], cpuTime()-began)
			cache.close()
		}
	}
	for _, c := range contestants {
		ratio := inserts[c.name].Seconds() / inserts[rival].Seconds()
		if !c.eachTTL {
			fmt.Fprintf(w, "| %s | %.2f s (%.2f) | one TTL for all entries | | | | |\n",
				c.name, inserts[c.name].Seconds(), ratio)
			continue
		}
		cache := c.make(2 * total)
		runtime.GC()
		deadlines := make([]int64, total) // ns
		for i := range deadlines {
			ttl := time.Second + time.Duration(rng.IntN(9001))*time.Millisecond
			cache.set(names[i], value(ttl), ttl)
			deadlines[i] = time.Now().Add(ttl).UnixNano()
			if i%10_000 == 0 {
				cache.settle()
			}
		}
		slices.Sort(deadlines)
		last := time.Unix(0, deadlines[total-1])
		spent := cpuTime()
		start := time.Now()
		written, mostDead, worst := 0, 0, 0.0
		overdue, reclaimed := 0.0, time.Duration(-1)
		looked := start
		for time.Since(last) < 8*time.Second {
			for due := int(time.Since(start).Seconds() * perSecond); written < due; written++ {
				cache.set(names[total+written%others], value(time.Hour), time.Hour)
			}
			if time.Since(looked) >= step {
				held := cache.len() - min(written, others)
				now := time.Now()
				dead, _ := slices.BinarySearch(deadlines, now.UnixNano())
				dead = max(0, held-(total-dead))
				overdue += float64(dead) * now.Sub(looked).Seconds()
				looked = now
				mostDead = max(mostDead, dead)
				worst = max(worst, float64(dead)/max(float64(held)/4, perSecond/4))
				if held <= 0 && now.After(last) {
					reclaimed = max(0, now.Sub(last))
					break
				}
			}
			time.Sleep(time.Millisecond)
		}
		after := "more than 8 s"
		if reclaimed >= 0 {
			after = fmt.Sprintf("%.1f s", reclaimed.Seconds())
		}
		share := (cpuTime() - spent).Seconds() / time.Since(start).Seconds()
		fmt.Fprintf(w, "| %s | %.2f s (%.2f) | %d | %.2f | %.3f s | %s | %.1f %% |\n",
			c.name, inserts[c.name].Seconds(), ratio, mostDead, worst, overdue/float64(total), after, 100*share)
		cache.close()
	}
}
