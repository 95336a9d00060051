package sliding_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// A refusal says to the millisecond when its calls will fit: a single caller that waits that long is admitted. It says so for the requested calls,
// even if the process refuses because of a trip for another number.
func TestAWaiterIsAdmitted(t *testing.T) {
	for kind, o := range windows {
		for _, lease := range []time.Duration{0, 200 * time.Millisecond} {
			t.Run(kind+" "+lease.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const window, limit = 10 * time.Second, 20_000
					o.Limit, o.Lease = limit, lease
					l := mayfly.Must(sliding.NewLimiter(calls(redistest.Start(t).Client(), window), o))
					defer l.Close(t.Context())
					allow := func(n int) sliding.Decision {
						d, err := l.Allow(t.Context(), "ada", n)
						want(t, err, nil)
						return d
					}
					time.Sleep(time.Until(time.Now().Truncate(window).Add(window)))
					for range 4 {
						allow(limit / 4)
						time.Sleep(time.Second)
					}
					for _, n := range []int{limit/2 + 1, 1, limit / 4, limit} {
						for allow(max(allow(0).Remaining, 1)).Allowed {
						}
						allow(3) // if the process refuses because of a trip, that was not for n
						d := allow(n)
						if d.Allowed {
							t.Fatalf("%d calls were admitted beyond the limit", n)
						}
						time.Sleep(d.RetryAfter - time.Millisecond)
						if lease == 0 && allow(n).Allowed {
							t.Errorf("%d calls were admitted before %v", n, d.RetryAfter)
						}
						time.Sleep(time.Millisecond)
						if after := allow(n); !after.Allowed {
							t.Errorf("%d calls were refused, %+v, and again after that, %+v", n, d, after)
						}
					}
					d := allow(0)
					time.Sleep(d.ResetAfter)
					if now := allow(0); now.Remaining != limit {
						t.Errorf("%+v, and after that %+v", d, now)
					}
				})
			})
		}
	}
}
