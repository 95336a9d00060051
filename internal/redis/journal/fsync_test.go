package journal

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// Writes are synced within a second, once, and nothing runs when nothing is written.
func TestEverysec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{Dir: t.TempDir()}, start)
		synced := func() int64 {
			synctest.Wait()
			r.j.mu.Lock()
			defer r.j.mu.Unlock()
			return r.j.safe.Load()
		}
		for range 3 {
			before := synced()
			r.play("SET", "a", "1")
			if now := synced(); now != before {
				t.Errorf("synced up to %d at once", now)
			}
			time.Sleep(syncEvery)
			if now := synced(); now != r.j.Position() {
				t.Errorf("synced up to %d of %d after a second", now, r.j.Position())
			}
		}
		time.Sleep(1000 * time.Hour)
		if r.j.timer != nil {
			t.Error("a timer goes on")
		}
		r.close()
	})
}

// Once the policy is always, a reply waits only for what the disk does not have yet: whatever was written under another policy, and in
// whichever file, the next reply comes.
func TestTurningToAlways(t *testing.T) {
	for _, before := range []string{"everysec", "no"} {
		t.Run(before, func(t *testing.T) {
			r := newRig(t, Options{Dir: t.TempDir(), Fsync: before, MinCompact: -1}, start)
			for i := range effort.Times(30, 1000) {
				r.play("SET", "a", strings.Repeat("v", i%3<<17)) // some take a while to be written
				runtime.Gosched()
				if i%3 == 1 {
					r.j.Compact()
				}
				if i%3 == 2 {
					r.compacted()
				}
				r.j.SetFsync("always")
				replied := make(chan error)
				go func() { replied <- r.j.Await(r.j.Position()) }()
				select {
				case err := <-replied:
					if err != nil {
						t.Fatal(err)
					}
				case <-time.After(20 * time.Second):
					t.Fatalf("round %d: a reply waits, although nothing is left to be written", i)
				}
				r.j.SetFsync(before)
			}
			r.compacted()
			r.close()
		})
	}
}
