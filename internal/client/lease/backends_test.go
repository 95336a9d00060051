package lease_test

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

// protocol is what must hold on every backend, for records and for plain values.
var protocol = []struct {
	name string
	test func(t *testing.T, rdb redis.UniversalClient, o lease.Options)
}{
	{"A miss is claimed once and filled", aMissIsClaimedOnceAndFilled},
	{"What happens to the key ends the right to fill", whatHappensToTheKeyEndsTheRightToFill},
	{"Clear", clear},
	{"Unusable bytes are claimed once", unusableBytesAreClaimedOnce},
	{"A renewal keeps the value and is one", aRenewalKeepsTheValueAndIsOne},
	{"A renewal that fails", aRenewalThatFails},
	{"A load that fails", aLoadThatFails},
	{"A load that is given up", aLoadThatIsGivenUp},
	{"A load that outlasts its time", aLoadThatOutlastsItsTime},
	{"Keep and release", keepAndRelease},
	{"A tombstone refuses fills", aTombstoneRefusesFills},
	{"Many keys in one trip", manyKeysInOneTrip},
	{"Scripts that a server forgot", scriptsThatAServerForgot},
	{"A record tells when it ends", aRecordTellsWhenItEnds},
}

func TestProtocol(t *testing.T) {
	for _, b := range backends.All {
		t.Run(b.Name, func(t *testing.T) {
			rdb := backends.LongLeases(t, b.Open(t))
			for _, p := range protocol {
				t.Run(p.name, func(t *testing.T) {
					t.Run("records", func(t *testing.T) { p.test(t, rdb, lease.Options{Redis: rdb, Timeout: 5 * time.Second}) })
					t.Run("records that tell their end", func(t *testing.T) {
						ending = true
						defer func() { ending = false }()
						p.test(t, rdb, lease.Options{Redis: rdb, Timeout: 5 * time.Second})
					})
					t.Run("plain", func(t *testing.T) { p.test(t, rdb, lease.Options{Redis: rdb, Timeout: 5 * time.Second, Plain: true}) })
				})
			}
		})
	}
}

// inMemory stands where go-redis wants an address; a name would be looked up, which deadlocks a bubble.
const inMemory = "127.0.0.1:1"

// mini returns a client of a miniredis that works in bubbles, and on their time. It is no place for long pipelines: a
// net.Pipe has no buffer, and miniredis answers the first command before it has read the last.
func mini(t *testing.T) *redis.Client {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	t.Cleanup(m.Close)
	rdb := redis.NewClient(&redis.Options{
		Addr:   inMemory,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },

		ContextTimeoutEnabled: true, // or no hook of a test would see anything
		PoolSize:              1000, // callers that wait in go-redis's pool share channels with other bubbles
	})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func TestMain(m *testing.M) {
	os.Exit(processes.Main(m))
}
