package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

// million measures many keys with a TTL: their memory, the cost of moving the clock, and how long dead keys stay while clients write.
func million(w io.Writer, o settings) {
	keys := o.scale(1_000_000, 50_000)
	fmt.Fprintf(w, `%d keys of 11 bytes with a TTL, values of 100 bytes. Bytes per key: live heap of the process that holds the double, and Redis's used_memory; the
bound is 1.2 x Redis. "Nothing due": the clock moved forward by a millisecond, the best of five (miniredis: of one); the bound is 1 ms.

| server | bytes per key | x Redis | clock moved, nothing due |
| --- | --- | --- | --- |
`, keys)
	theirs := func() float64 {
		s := startRedis()
		defer s.stop()
		rdb := s.client()
		defer rdb.Close()
		bare := s.info(rdb, "used_memory")
		fillKeys(rdb, keys)
		return float64(s.info(rdb, "used_memory")-bare) / float64(keys)
	}()
	bare := liveHeap()
	double := must(redistest.Run())
	fillKeys(double.Client(), keys)
	ours := float64(liveHeap()-bare) / float64(keys)
	moved := time.Hour
	for range 5 {
		began := time.Now()
		double.Advance(time.Millisecond)
		moved = min(moved, time.Since(began))
	}
	late := ""
	if moved > time.Millisecond {
		late = ", missed"
	}
	fmt.Fprintf(w, "| redistest | %.0f | %s | %.3f ms%s |\n", ours, verdict(ours/theirs, 1.2, false), ms(moved), late)
	double.Client().Close()
	double.Close()
	double = nil

	bare = liveHeap()
	mini := must(miniredis.Run())
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	fillKeys(rdb, keys)
	weight := float64(liveHeap()-bare) / float64(keys)
	began := time.Now()
	mini.FastForward(time.Millisecond)
	fmt.Fprintf(w, "| miniredis | %.0f | %.2f | %.0f ms |\n", weight, weight/theirs, ms(time.Since(began)))
	rdb.Close()
	mini.Close()
	fmt.Fprintf(w, "| Redis 8 | %.0f | 1.00 | |\n", theirs)
	runtime.GC()
	underLoad(w, o)
}

// fillKeys writes keys that live for an hour.
func fillKeys(rdb *redis.Client, keys int) {
	ctx, value := context.Background(), strings.Repeat("v", 100)
	for at := 0; at < keys; at += 1000 {
		p := rdb.Pipeline()
		for i := at; i < min(at+1000, keys); i++ {
			p.Set(ctx, fmt.Sprintf("key:%07d", i), value, time.Hour)
		}
		if _, err := p.Exec(ctx); err != nil {
			panic(err)
		}
	}
}

// underLoad counts the dead keys that a server holds while clients write keys with TTLs of 1 to 10 s that nobody reads.
func underLoad(w io.Writer, o settings) {
	const clients, batch = 4, 100
	run := time.Duration(o.scale(20, 3)) * time.Second
	fmt.Fprintf(w, `
%d clients write keys, in pipelines of %d, as fast as the server takes them, for %v; TTLs are uniform in 1..10 s and nobody reads. Every 100 ms the clients stand still for a
moment and DBSIZE is compared with the keys whose deadline has not passed. The bound on the dead is max(25 %% of the keys held, writes per second / 4);
"of the bound" is the worst moment.

| server | writes per second | keys held, most | dead held, most | of the bound | mean dead |
| --- | --- | --- | --- | --- | --- |
`, clients, batch, run)
	for _, start := range []func() *contender{func() *contender { return startMayfly() }, startRedis} {
		s := start()
		l := drive(s, run, clients, batch)
		missed := ""
		if s.name == theDouble && l.ofBound > 1 {
			missed = ", missed"
		}
		fmt.Fprintf(w, "| %s | %.0f | %d | %d | %.3f%s | %.0f |\n", s.name, l.perSecond, l.held, l.dead, l.ofBound, missed, l.meanDead)
		s.stop()
	}
}

// burden is the result of underLoad for one server.
type burden struct {
	perSecond  float64
	held, dead int64 // the most
	ofBound    float64
	meanDead   float64
}

func drive(s *contender, run time.Duration, clients, batch int) (b burden) {
	ctx := context.Background()
	base := time.Now().UnixMilli()
	ends := make([]atomic.Int64, (run + time.Minute).Milliseconds()) // keys by the millisecond of their deadline, from base
	var writes atomic.Int64
	var still sync.RWMutex // held for reading while a pipeline is under way
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for c := range clients {
		writers.Go(func() {
			rdb, value := s.client(), strings.Repeat("v", 100)
			defer rdb.Close()
			rng := rand.New(rand.NewPCG(uint64(c), 1))
			for n := 0; ; {
				select {
				case <-stop:
					return
				default:
				}
				still.RLock()
				p := rdb.Pipeline()
				now := time.Now().UnixMilli()
				for range batch {
					end := now + 1000 + rng.Int64N(9000)
					ends[end-base].Add(1)
					p.Do(ctx, "SET", fmt.Sprintf("%d:%08d", c, n), value, "PXAT", end)
					n++
				}
				if _, err := p.Exec(ctx); err != nil {
					panic(err)
				}
				still.RUnlock()
				writes.Add(int64(batch))
			}
		})
	}
	rdb := s.client()
	defer rdb.Close()
	began, samples, last := time.Now(), 0, int64(0)
	for range run / (100 * time.Millisecond) {
		time.Sleep(100 * time.Millisecond)
		still.Lock()
		p := rdb.TxPipeline()
		clock, size := p.Time(ctx), p.DBSize(ctx)
		p.Exec(ctx)
		alive := int64(0)
		for i := max(clock.Val().UnixMilli()-base, 0); i < int64(len(ends)); i++ {
			alive += ends[i].Load()
		}
		rate := float64(writes.Load()-last) * 10
		last = writes.Load()
		still.Unlock()
		held := size.Val()
		dead := held - alive
		b.held, b.dead = max(b.held, held), max(b.dead, dead)
		b.ofBound = max(b.ofBound, float64(dead)/max(float64(held)/4, rate/4))
		b.meanDead += float64(dead)
		samples++
	}
	b.perSecond = float64(writes.Load()) / time.Since(began).Seconds()
	b.meanDead /= float64(samples)
	close(stop)
	writers.Wait()
	return b
}
