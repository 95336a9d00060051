package cacheaside_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/redistest"
)

// An error names the operation, the key and the server, in the caller's own words.
func TestErrorsSayWhatWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ns := namespace(t, srv.Client())
		cache, err := cacheaside.New(ns, load, cacheaside.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		full, err := ns.FullKey(7)
		if err != nil {
			t.Fatal(err)
		}
		want := func(what string, err error, all ...string) {
			t.Helper()
			for _, part := range all {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%s: got error %v, want one with %q", what, err, part)
				}
			}
		}
		srv.Hang()
		slow := []string{"redis did not answer in time (", ", 150ms)"}
		want("Set", cache.Set(ctx, 7, user{}), append(slow, `cacheaside: set "`+full+`": `)...)
		want("Delete", cache.Delete(ctx, 7), append(slow, `cacheaside: delete "`+full+`": `)...)
		srv.Thaw()
		want("SetFor", cache.SetFor(ctx, 7, user{}, time.Hour), `cacheaside: set "`+full+`": the ttl is 1h0m0s`)
		if err := cache.Close(ctx); err != nil {
			t.Fatal(err)
		}
		_, err = cache.Get(ctx, 7)
		want("a closed cache", err, `cacheaside: cache "`+ns.Name+`": closed`)
		if !errors.Is(err, mayfly.ErrClosed) {
			t.Errorf("%v is not ErrClosed", err)
		}
	})
	one, two := &cacheaside.ManyError[int]{Errs: map[int]error{7: mayfly.ErrNotFound}}, &cacheaside.ManyError[int]{Errs: map[int]error{7: mayfly.ErrNotFound, 8: mayfly.ErrNotFound}}
	if got, want := one.Error(), "cacheaside: key 7 failed: not found"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := two.Error(), "cacheaside: 2 keys failed; one of them is "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := check.TTL("Namespace.TTL", 3600); err == nil || !strings.Contains(err.Error(), "a bare number counts nanoseconds") {
		t.Errorf("TTL: 3600: got error %v", err)
	}
	if err := check.TTL("Namespace.TTL", -time.Second); err == nil || strings.Contains(err.Error(), "nanoseconds") {
		t.Errorf("TTL: -time.Second: got error %v", err)
	}
}
