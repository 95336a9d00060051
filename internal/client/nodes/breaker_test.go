package nodes_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

var start = time.Unix(1_000_000, 0)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func expect(t *testing.T, b *nodes.Breaker, ms int, want nodes.Verdict) {
	t.Helper()
	if got := b.Allow(at(ms)); got != want {
		t.Errorf("at %d ms: verdict %d, want %d", ms, got, want)
	}
}

func open(t *testing.T, b *nodes.Breaker, ms int) {
	t.Helper()
	for i := range nodes.Threshold {
		expect(t, b, ms, nodes.Pass)
		if opened := b.Failure(at(ms), 1); opened != (i == nodes.Threshold-1) {
			t.Errorf("failure %d: opened is %v", i+1, opened)
		}
	}
}

func TestOpensAfterFailuresInARow(t *testing.T) {
	var b nodes.Breaker
	for range nodes.Threshold - 1 {
		b.Failure(at(0), 1)
	}
	if b.Success() {
		t.Error("a success closed what was not open")
	}
	open(t, &b, 0)
	expect(t, &b, 0, nodes.Refuse)
	expect(t, &b, 499, nodes.Refuse)
}

func TestOneProbeAtATime(t *testing.T) {
	var b nodes.Breaker
	open(t, &b, 0)
	expect(t, &b, 500, nodes.Probe)
	expect(t, &b, 500, nodes.Refuse)
	b.Failure(at(600), 1) // the probe's, or a late one's: the next probe stays where it is
	expect(t, &b, 999, nodes.Refuse)
	expect(t, &b, 1000, nodes.Probe)
	if !b.Success() || b.Success() {
		t.Error("the probe's success must close it, once")
	}
	expect(t, &b, 1001, nodes.Pass)
	open(t, &b, 1002) // and the count began anew
}

func TestALostProbeIsFollowedByAnother(t *testing.T) {
	var b nodes.Breaker
	open(t, &b, 0)
	expect(t, &b, 700, nodes.Probe)
	expect(t, &b, 1199, nodes.Refuse)
	expect(t, &b, 1200, nodes.Probe)
}

func TestLateFailuresDoNotProlong(t *testing.T) {
	var b nodes.Breaker
	open(t, &b, 0)
	for ms := range 400 {
		if b.Failure(at(ms), 1) {
			t.Fatal("opened twice")
		}
	}
	expect(t, &b, 500, nodes.Probe)
}

func TestManyAskAtOnceAndOneProbes(t *testing.T) {
	var b nodes.Breaker
	open(t, &b, 0)
	for interval := 1; interval <= 20; interval++ {
		var probes atomic.Int32
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				if b.Allow(at(interval*500)) == nodes.Probe {
					probes.Add(1)
					b.Failure(at(interval*500), 1)
				}
			})
		}
		wg.Wait()
		if n := probes.Load(); n != 1 {
			t.Fatalf("interval %d: %d probes", interval, n)
		}
	}
}

func BenchmarkClosed(b *testing.B) {
	var br nodes.Breaker
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			br.Allow(start)
			br.Success()
		}
	})
}
