package cacheaside_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/redistest"
)

// The bounds of a namespace's jitter apply to its values: a miss is remembered for MissTTL, not for as long as a value lives.
func TestJittersBoundsAreNotAboutMisses(t *testing.T) {
	rdb := redistest.Start(t).Client()
	ns := namespace(t, rdb)
	ns.TTL, ns.Jitter = time.Hour, jitter.Spread{Fraction: 0.1, Floor: time.Hour, Ceiling: 2 * time.Hour}
	c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) { return user{}, mayfly.ErrNotFound },
		cacheaside.Options{MissTTL: 10 * time.Second, RedisTimeout: patient}))
	if _, err := c.Get(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) {
		t.Fatal(err)
	}
	if left := rdb.PTTL(t.Context(), ns.Prefix+"7").Val(); left <= 0 || left > 11*time.Second {
		t.Errorf("it is remembered for %v", left)
	}
}
