package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"time"
)

// heap measures what an entry costs in memory, and what the collector pays for the cache being there.
func heap(w io.Writer, o settings) {
	entries := o.scale(1_000_000, 50_000)
	fmt.Fprintf(w, `%d entries with a value of 100 bytes, a key of 21 bytes and a TTL, in a cache of that capacity. Live heap after a
collection, key and value included; the forced collection is the best of five.

`, entries)
	fmt.Fprintf(w, "| cache | held | bytes per entry | forced collection, wall | CPU |\n| --- | --- | --- | --- | --- |\n")
	for _, c := range contestants {
		bare := liveHeap()
		cache := c.make(entries)
		for i := range entries {
			value := make([]byte, 100)
			binary.LittleEndian.PutUint32(value, uint32(time.Hour.Milliseconds()))
			cache.set(fmt.Sprintf("user:%016d", i), value, time.Hour)
			if i%1000 == 0 {
				cache.settle()
			}
		}
		cache.settle()
		live := liveHeap()
		held := cache.len()
		wall, cpu := time.Hour, time.Hour
		for range 5 {
			at, spent := time.Now(), cpuTime()
			runtime.GC()
			wall, cpu = min(wall, time.Since(at)), min(cpu, cpuTime()-spent)
		}
		fmt.Fprintf(w, "| %s | %d | %.0f | %.1f ms | %.1f ms |\n",
			c.name, held, float64(live-bare)/float64(held), ms(wall), ms(cpu))
		runtime.KeepAlive(cache)
		cache.close()
	}
}

func liveHeap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
