package mayfly_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/redistest"
)

// century is the longest TTL.
const century = 100 * 365 * 24 * time.Hour

// A jittered TTL must leave room for a stale window: a sum that overflows would be a TTL of a millisecond.
func TestJitterThatMakesATTLTooLong(t *testing.T) {
	ns := mayfly.Namespace[int, string]{Name: "users", Redis: redistest.Start(t).Client(), Prefix: "user:", TTL: century}
	for _, j := range []jitter.Spread{{Fraction: 0.99}, {Floor: 2 * century}} {
		ns.Jitter = j
		if err := ns.Validate(); err == nil || !strings.Contains(err.Error(), "Namespace.Jitter") {
			t.Errorf("%+v: %v", j, err)
		}
	}
	for _, j := range []jitter.Spread{jitter.Default, jitter.Spread{}, {Floor: time.Hour, Ceiling: century}, {Fraction: 0.99, Ceiling: century}} {
		ns.Jitter = j
		if err := ns.Validate(); err != nil {
			t.Errorf("%+v: %v", j, err)
		}
	}
}
