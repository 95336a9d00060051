package cacheaside_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/redistest"
)

// behaviours hold on every backend. Each uses keys of its own, and no clock: tests make values stale by changing their TTL.
var behaviours = []struct {
	name string
	test func(t *testing.T, rdb redis.UniversalClient)
}{
	{"the way of a read", theWayOfARead},
	{"an absence is remembered where that is asked", anAbsenceIsRemembered},
	{"nothing is remembered by default", nothingIsRememberedByDefault},
	{"a loader that decides for itself", aLoaderThatDecidesForItself},
	{"Fetch", fetch},

	{"one load for all", oneLoadForAll},
	{"who leaves disturbs nobody", whoLeavesDisturbsNobody},
	{"a load that nobody wants any more", aLoadThatNobodyWantsAnyMore},
	{"a loader that panics or exits", aLoaderThatPanicsOrExits},
	{"Close waits, and leaves no goroutine", closeWaits},

	{"a Get after Delete never sees an older load", aGetAfterDeleteNeverSeesAnOlderLoad},
	{"Delete kills the stale copy too", deleteKillsTheStaleCopyToo},
	{"Hold refuses fills", holdRefusesFills},
	{"Hold is not shortened", holdIsNotShortened},

	{"GetMany", getMany},
	{"SetMany", setMany},
	{"Warm", warm},
	{"crossing batches load nothing twice", crossingBatchesLoadNothingTwice},
	{"round trips", roundTrips},

	{"a renewal in the background, once", aRenewalInTheBackground},
	{"renewals are bounded", renewalsAreBounded},
	{"stale while revalidate", staleWhileRevalidate},
	{"stale if error", staleIfError},
	{"the origin forgot", theOriginForgot},
	{"a deploy costs one load per key", aDeployCostsOneLoadPerKey},

	{"what cannot be read is loaded anew", whatCannotBeReadIsLoadedAnew},
	{"a value the codec refuses", aValueTheCodecRefuses},
	{"a nil value is a value", aNilValueIsAValue},
	{"an empty key touches nothing", anEmptyKeyTouchesNothing},
	{"Compress", compress},

	{"plain values are the codec's bytes", plainValuesAreTheCodecsBytes},
	{"a plain fill does not overwrite another program", aPlainFillDoesNotOverwriteAnotherProgram},

	{"another program's list is left alone", anotherProgramsListIsLeftAlone},
	{"scripts that a server forgot", scriptsThatAServerForgot},
}

func TestBackends(t *testing.T) {
	for _, b := range backends.All {
		t.Run(b.Name, func(t *testing.T) {
			rdb := backends.LongLeases(t, b.Open(t))
			for _, x := range behaviours {
				t.Run(x.name, func(t *testing.T) { x.test(t, rdb) })
			}
		})
	}
}

// inBubbles runs a test about time in a synctest bubble, on each server that lives in memory: hours cost nothing there.
func inBubbles(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Run("redistest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, redistest.Start(t).Client()) })
	})
	t.Run("miniredis", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, mini(t)) })
	})
}

// mini returns a client of a miniredis that works in bubbles, and on their time. It is no place for long pipelines: a
// net.Pipe has no buffer, and miniredis answers the first command before it has read the last.
func mini(t testing.TB) *redis.Client {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	t.Cleanup(m.Close)
	rdb := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:1", // a name would be looked up, which deadlocks a bubble
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },

		ContextTimeoutEnabled: true, // otherwise hooks of tests would not see the commands
		PoolSize:              1000, // callers that wait in go-redis's pool share channels with other bubbles
	})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}
