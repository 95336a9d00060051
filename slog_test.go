package mayfly_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/redistest"
)

// logged is what a Logger wrote, without the time.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns what was written since it was called last.
func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	l.text.Reset()
	return text
}

func (l *logged) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestSlog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logged
		o := mayfly.Slog(out.logger(slog.LevelInfo))
		see := func(times int, e mayfly.Event) {
			for range times {
				o.Observe(t.Context(), e)
			}
		}
		says := func(what, want string) {
			t.Helper()
			if got := out.take(); got != want {
				t.Errorf("%s:\n%swant\n%s", what, got, want)
			}
		}
		gone := errors.New("gone")
		see(1, mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeOK, Namespace: "users", Key: "k"})
		see(1, mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeFailed, Namespace: "users", Err: fmt.Errorf("load: %w", mayfly.ErrNotFound)})
		says("what is no failure", "")
		see(3, mayfly.Event{Kind: mayfly.KindRemoval, Outcome: mayfly.OutcomeFailed, Namespace: "users", N: 3, Err: gone})
		see(2, mayfly.Event{Kind: mayfly.KindRemoval, Outcome: mayfly.OutcomeFailed, Namespace: "pages", Key: "k", Took: time.Second, Err: gone})
		see(1, mayfly.Event{Kind: mayfly.KindBackend, Outcome: mayfly.OutcomeTimedOut, Namespace: "users"})
		says("the first of each", "level=WARN msg=\"mayfly: removal\" namespace=users outcome=failed n=3 err=gone\n"+
			"level=WARN msg=\"mayfly: removal\" namespace=pages outcome=failed key=k took=1s err=gone\n"+
			"level=WARN msg=\"mayfly: backend\" namespace=users outcome=timed_out\n")
		see(5, mayfly.Event{Kind: mayfly.KindRemoval, Outcome: mayfly.OutcomeDropped, Namespace: "users", Err: gone})
		time.Sleep(time.Second)
		synctest.Wait()
		got := out.take() // the two timers ring in any order
		for _, want := range []string{
			"level=WARN msg=\"mayfly: removal\" namespace=users outcome=dropped times=7 within=1s err=gone\n",
			"level=WARN msg=\"mayfly: removal\" namespace=pages outcome=failed times=1 within=1s key=k took=1s err=gone\n",
		} {
			if !strings.Contains(got, want) || strings.Count(got, "\n") != 2 {
				t.Errorf("a second later:\n%swant\n%s", got, want)
			}
		}
		see(1, mayfly.Event{Kind: mayfly.KindRemoval, Outcome: mayfly.OutcomeFailed, Namespace: "users", Err: gone})
		says("in the second after a sum", "")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		says("when it is over", "level=WARN msg=\"mayfly: removal\" namespace=users outcome=failed times=1 within=1s err=gone\n")
		see(1, mayfly.Event{Kind: mayfly.KindRemoval, Outcome: mayfly.OutcomeFailed, Namespace: "users", Err: gone})
		says("the next", "level=WARN msg=\"mayfly: removal\" namespace=users outcome=failed err=gone\n")

		see(2, mayfly.Event{Kind: mayfly.KindWarning, Outcome: mayfly.OutcomeOK, Namespace: "users", Err: gone})
		time.Sleep(time.Hour)
		see(2, mayfly.Event{Kind: mayfly.KindWarning, Outcome: mayfly.OutcomeOK, Namespace: "users", Err: gone})
		says("warnings", "level=WARN msg=\"mayfly: warning\" namespace=users outcome=ok err=gone\n")

		for range 1000 { // a breaker that goes back and forth
			see(1, mayfly.Event{Kind: mayfly.KindBreaker, Outcome: mayfly.OutcomeFailed, Namespace: "users", Err: gone})
			time.Sleep(701 * time.Microsecond) // so that nothing is at the same time as a sum
			see(1, mayfly.Event{Kind: mayfly.KindBreaker, Outcome: mayfly.OutcomeOK, Namespace: "users"})
			time.Sleep(700 * time.Microsecond)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(out.take()), "\n")
		if len(lines) != 6 || lines[0] != "level=WARN msg=\"mayfly: breaker\" namespace=users outcome=failed err=gone" ||
			lines[1] != "level=INFO msg=\"mayfly: breaker\" namespace=users outcome=ok" || !strings.HasPrefix(lines[5], "level=INFO msg=\"mayfly: breaker\" namespace=users outcome=ok times=") {
			t.Errorf("got\n%s", strings.Join(lines, "\n"))
		}
	})
}

// At level Debug each Event is written.
func TestSlogDebug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logged
		o := mayfly.Slog(out.logger(slog.LevelDebug))
		for i := range 3 {
			o.Observe(t.Context(), mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeFailed, Namespace: "users", N: i, Err: errors.New("gone")})
		}
		o.Observe(t.Context(), mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeOK, Namespace: "users", Key: "k", Took: time.Second})
		if got, want := out.take(), "level=WARN msg=\"mayfly: load\" namespace=users outcome=failed err=gone\n"+
			"level=DEBUG msg=\"mayfly: load\" namespace=users outcome=failed n=1 err=gone\n"+
			"level=DEBUG msg=\"mayfly: load\" namespace=users outcome=failed n=2 err=gone\n"+
			"level=DEBUG msg=\"mayfly: load\" namespace=users outcome=ok key=k took=1s\n"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// A start at which all is well has no warnings, and an outage in which 10,000 calls meet a Redis that hangs has a handful of lines.
func TestTheLogOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logged
		log := mayfly.Slog(out.logger(slog.LevelInfo))
		srv := redistest.Start(t)
		local, err := mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: srv.Client(), Prefixes: []string{"cache:"}, MaxEntries: 10, Observer: log})
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close(context.Background())
		c := mayfly.Must(cacheaside.New(mayfly.Namespace[int, int]{
			Name: "users", Redis: srv.Client(), Prefix: "cache:", TTL: time.Hour, Observer: log, Local: local,
		}, func(_ context.Context, key int) (int, error) { return key, nil }, cacheaside.Options{}))
		defer c.Close(context.Background())
		c.Get(t.Context(), 1)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := out.take(); strings.Contains(got, "WARN") || strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=INFO msg=\"mayfly: coherence\" outcome=tracking key=cache:") {
			t.Errorf("a healthy start says\n%s", got)
		}
		srv.Hang()
		for i := range 10_000 {
			if _, err := c.Get(t.Context(), 10+i); err != nil {
				t.Fatal(err)
			}
		}
		srv.Thaw()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		c.Get(t.Context(), 1)
		got := out.take()
		if n := strings.Count(got, "\n"); n < 3 || n > 15 {
			t.Errorf("%d lines:\n%s", n, got)
		}
		for _, want := range []string{"times=99", "msg=\"mayfly: breaker\" namespace=users outcome=failed", "msg=\"mayfly: breaker\" namespace=users outcome=ok"} {
			if !strings.Contains(got, want) {
				t.Errorf("nothing says %s in\n%s", want, got)
			}
		}
	})
}

func TestSlogBelowItsLevelAllocatesNothing(t *testing.T) {
	o := mayfly.Slog(slog.New(slog.DiscardHandler))
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { o.Observe(ctx, mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeMiss, Key: "k"}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The first sum of failures does not make them cost more than a lock.
func TestSlogCountsWithoutAllocating(t *testing.T) {
	o := mayfly.Slog((&logged{}).logger(slog.LevelInfo))
	ctx, e := t.Context(), mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeBypass, Namespace: "users", Key: "k", Err: errors.New("gone")}
	if n := testing.AllocsPerRun(1000, func() { o.Observe(ctx, e) }); n > 0.1 {
		t.Errorf("%v allocations", n)
	}
}
