package expiry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"
)

var lives = []struct {
	name string
	mean float64 // ms, by which the clock of a benchmark advances
	draw func(*rand.Rand) int64
}{
	{"1to10s", 5500, func(r *rand.Rand) int64 { return 1000 + r.Int64N(9000) }},
	{"1h+-10%", 3_600_000, func(r *rand.Rand) int64 { return 3_240_000 + r.Int64N(720_000) }},
	{"same-ms", 60_000, func(*rand.Rand) int64 { return 60_000 }},
	{"anything", 60_000, func(r *rand.Rand) int64 { return 1 + r.Int64N(math.MaxInt64>>r.IntN(63)) }},
}

const epoch = int64(1) << 40

// stopwatch measures the processor time of this process, which excludes other processes on the machine.
type stopwatch struct{ since, sum time.Duration }

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (s *stopwatch) start() { s.since = processorTime() }
func (s *stopwatch) stop()  { s.sum += processorTime() - s.since }

func (s *stopwatch) report(b *testing.B, n int) {
	b.ReportMetric(float64(s.sum)/float64(n), "cpu-ns/op")
}

// BenchmarkIndex measures the time of one operation among n entries.
//
//	insert   Set of a new id, ids in order, the arrays growing
//	churn    one Set of a free id and the reaping of one, the clock advancing so that there are n
//	touch    Set of a random id to a new life from now; the clock advances a tenth as fast
//	replace  Remove and Set of a random id; the clock as for touch
//	burst    reaping one of n that are dead all at once, in calls of 100
//	ask      Deadline of a random id
func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{1 << 14, 1 << 20} {
		for _, life := range lives {
			r := rand.New(rand.NewPCG(1, 2))
			var ttl [1 << 16]int64
			for i := range ttl {
				ttl[i] = life.draw(r)
			}
			order := make([]uint32, n) // memory as in a running program: ids in no order
			for i, id := range r.Perm(n) {
				order[i] = uint32(id)
			}
			rate := float64(n) / life.mean // per ms
			fill := func(x *Index) {
				for i, id := range order {
					x.Set(id, deadline(epoch, ttl[i%len(ttl)]))
				}
			}
			name := func(what string) string { return fmt.Sprintf("%s/%s/%d", what, life.name, n) }
			measure := func(what string, prepare func() (turn func())) {
				b.Run(name(what), func(b *testing.B) {
					turn := prepare()
					var w stopwatch
					b.ResetTimer()
					w.start()
					for range b.N {
						turn()
					}
					w.stop()
					w.report(b, b.N)
				})
			}
			b.Run(name("insert"), func(b *testing.B) {
				var w stopwatch
				for done := 0; done < b.N; {
					x, some := new(Index), min(n, b.N-done)
					w.start()
					for id := range uint32(some) {
						x.Set(id, deadline(epoch, ttl[int(id)%len(ttl)]))
					}
					w.stop()
					done += some
				}
				w.report(b, b.N)
			})
			b.Run(name("burst"), func(b *testing.B) {
				var w stopwatch
				x := new(Index)
				for done := 0; done < b.N; {
					fill(x)
					w.start()
					for done < b.N && x.Len() > 0 {
						done += x.Reap(math.MaxInt64, 100, func(uint32) {})
					}
					w.stop()
				}
				w.report(b, b.N)
			})
			at := uint32(1)
			random := func() uint32 { at = at*1664525 + 1013904223; return at >> 8 % uint32(n) }
			measure("ask", func() func() {
				x := new(Index)
				fill(x)
				return func() { sink += x.Deadline(random()) }
			})
			if life.name != "anything" { // most of those never die
				measure("churn", func() func() {
					x, now := new(Index), float64(epoch)
					free := append([]uint32(nil), order...)
					reap := func(id uint32) { free = append(free, id) }
					i := 0
					turn := func() {
						if len(free) > 0 {
							x.Set(free[len(free)-1], deadline(int64(now), ttl[i%len(ttl)]))
							free = free[:len(free)-1]
						}
						if i++; i%16 == 0 {
							now += 16 / (0.9 * rate)
							x.Reap(int64(now), x.Len(), reap)
						}
					}
					for range 3 * n {
						turn()
					}
					return turn
				})
			}
			for _, what := range []string{"touch", "replace"} {
				measure(what, func() func() {
					x, now := new(Index), float64(epoch)
					fill(x)
					i := 0
					turn := func() {
						id := random()
						if what == "replace" {
							x.Remove(id)
						}
						x.Set(id, deadline(int64(now), ttl[i%len(ttl)]))
						if i++; i%16 == 0 {
							now += 16 / (10 * rate)
							x.Reap(int64(now), x.Len(), func(uint32) {})
						}
					}
					for range 2 * n {
						turn()
					}
					return turn
				})
			}
		}
	}
}

var sink int64

func deadline(now, ttl int64) int64 {
	if ttl > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ttl
}

// BenchmarkMemory reports the live bytes per entry, with a million entries.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	heapNow := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for _, life := range lives {
		b.Run(life.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				before := heapNow()
				x := new(Index)
				for id := range uint32(n) {
					x.Set(id, deadline(epoch, life.draw(r)))
				}
				b.ReportMetric((heapNow()-before)/n, "B/id")
				runtime.KeepAlive(x)
			}
		})
	}
}
