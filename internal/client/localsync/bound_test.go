package localsync_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// Where the server would allow tracking, a copy is served for at most Silence after its key has changed by others' hands: writes
// are refused for a while, the server hangs or is full, links are lost.
func TestNoCopyOutlivesItsChangeBySilence(t *testing.T) {
	for seed := range uint64(effort.Times(1, 50)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
				r := rand.New(rand.NewPCG(seed, 7))
				n := open(t, srv.Client(), nil)
				troubled(t, srv, n, other, r)
			})
		})
	}
}

func troubled(t *testing.T, srv *redistest.Server, n *near, other *redis.Client, r *rand.Rand) {
	const silence = 2 * time.Second
	changed := map[string]time.Time{} // when the value that is in Redis now came there
	values := map[string]string{}
	served, refused, onTracking := 0, 0, 0
	calm := func() {} // ends the trouble
	next := time.Now()
	steps := effort.Times(15_000, 40_000)
	for step := range steps {
		if time.Now().After(next) {
			calm()
			calm = trouble(t, srv, other, r)
			next = time.Now().Add(time.Duration(r.IntN(20_000)) * time.Millisecond)
		}
		key := fmt.Sprint("a:", r.IntN(20))
		v := n.get(key)
		switch {
		case r.IntN(50) == 0: // by a client without announcements
			values[key] = fmt.Sprint(step)
			if err := srv.Set(key, values[key]); err != nil { // a full server accepts no writes but deletes
				srv.Del(key)
				values[key] = ""
			}
			changed[key] = time.Now()
		case v != "":
			served++
			if v != values[key] && time.Since(changed[key]) > silence {
				t.Fatalf("step %d: %s is served as %q, which ended %v ago: %v", step, key, v, time.Since(changed[key]), n.toldRungs())
			}
		default:
			k := n.Begin(key)
			if k == (localsync.Ticket{}) {
				refused++
			} else if values[key] != "" {
				n.insert(key, k, answer{values[key], time.Hour})
			}
		}
		if n.Stats().Rung == localsync.Tracking {
			onTracking++
		}
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
	calm()
	n.neverOnPubSub()
	t.Logf("%d copies served, %d reads without a ticket, on tracking in %d of %d steps, %d changes of the rung", served, refused, onTracking, steps, len(n.toldRungs()))
	if served < 1000 || refused < 100 || onTracking == steps {
		t.Error("it was too quiet")
	}
	synctest.Wait()
}

// trouble begins one of the possible faults, and returns its end.
func trouble(t *testing.T, srv *redistest.Server, other *redis.Client, r *rand.Rand) (end func()) {
	switch r.IntN(6) {
	case 0:
		return refuseWrites(t, srv, refusals[r.IntN(len(refusals))])
	case 1:
		srv.Hang()
		return srv.Thaw
	case 2:
		srv.KillConnections()
	case 3:
		other.ConfigSet(t.Context(), "maxmemory", "1")
		return func() { other.ConfigSet(t.Context(), "maxmemory", "0") }
	case 4:
		srv.Del("mayfly:probe")
		return refuseWrites(t, srv, refusals[0])
	}
	return func() {}
}
