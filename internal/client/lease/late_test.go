package lease_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// losing loses the replies to the next commands of a name: they are executed at once, or are still under way. What may be repeated
// is, as go-redis does below its hooks.
type losing struct {
	name     string
	next     int  // how many are lost
	executed bool // at once
	sent     int
	late     [][]any // commands under way
}

func (l *losing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *losing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return l.lose(cmd, func() error { return next(ctx, cmd) })
	}
}

func (l *losing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if i := slices.IndexFunc(cmds, func(c redis.Cmder) bool { return c.Name() == l.name }); i >= 0 {
			err := l.lose(cmds[i], func() error { return next(ctx, cmds) })
			if err == io.EOF {
				for _, c := range cmds {
					c.SetErr(err)
				}
			}
			return err
		}
		return next(ctx, cmds)
	}
}

func (l *losing) lose(cmd redis.Cmder, send func() error) error {
	if cmd.Name() != l.name {
		return send()
	}
	if l.sent++; l.next == 0 {
		return send()
	}
	l.next--
	if l.executed {
		send()
	} else {
		l.late = append(l.late, cmd.Args())
	}
	if !cmd.NoRetry() {
		return send()
	}
	cmd.SetErr(io.EOF)
	return io.EOF
}

// arrive executes the commands that were under way.
func (l *losing) arrive(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	for _, args := range l.late {
		if err := rdb.Do(t.Context(), args...).Err(); err != nil && err != redis.Nil {
			t.Fatal(err)
		}
	}
	l.late = nil
}

func lossy(t *testing.T, name string, n int, executed bool) (*losing, *redis.Client) {
	rdb := backends.LongLeases(t, mini(t)).(*redis.Client)
	l := &losing{name: name, next: n, executed: executed}
	rdb.AddHook(l)
	return l, rdb
}

func TestAClaimWhoseReplyWasLostIsAskedAgain(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, executed := range []bool{false, true} {
			l, rdb := lossy(t, "set", 1, executed)
			o := lease.Options{Redis: rdb, Timeout: 5 * time.Second, Plain: plain}
			g, ctx := lease.New(o), t.Context()
			c := claim(t, g, "k", lease.Found{})
			if l.sent != 2 {
				t.Fatalf("plain %v: %d claims were sent, want the lost one and another", plain, l.sent)
			}
			if !fill(t, o, c, "old") {
				t.Errorf("plain %v: the fill was refused", plain)
			}
			expect.OK(t, g.Delete(ctx, []string{"k"})[0])
			l.arrive(t, rdb)
			if fill(t, o, c, "old") { // as a second load of the same claim would
				t.Errorf("plain %v: the claim arrived late, and was good for a fill", plain)
			}
			if f := look(t, g, "k"); f.State == lease.Present {
				t.Errorf("plain %v: found %s", plain, f.Raw)
			}
		}
	}
}

func TestTheWholeWayOfALateClaim(t *testing.T) {
	l, rdb := lossy(t, "set", 1, false)
	o := lease.Options{Redis: rdb, Timeout: 5 * time.Second}
	g, ctx := lease.New(o), t.Context()
	c := claim(t, g, "k", lease.Found{})
	// The loader reads the old value; somebody commits a new one.
	expect.OK(t, g.Delete(ctx, []string{"k"})[0])
	l.arrive(t, rdb)
	if look(t, g, "k").State != lease.Loading {
		t.Fatal("the late claim did not arrive")
	}
	if fill(t, o, c, "old") {
		t.Error("the old value was stored after Delete had returned nil")
	}
}

func TestASetIsSentOnce(t *testing.T) {
	l, rdb := lossy(t, "set", 1, false)
	g, ctx := lease.New(lease.Options{Redis: rdb, Timeout: 5 * time.Second}), t.Context()
	if err := g.Set(ctx, []lease.Value{{Key: "k", Bytes: []byte("v"), TTL: time.Minute}})[0]; err == nil || l.sent != 1 {
		t.Errorf("sent %d times, error %v", l.sent, err)
	}
}

// A flag goes on, off and on again, with a Delete after each commit.
func TestAPlainRenewalEndsWithADelete(t *testing.T) {
	_, rdb := lossy(t, "", 0, false)
	o := lease.Options{Redis: rdb, Timeout: 5 * time.Second, Plain: true}
	g, ctx := lease.New(o), t.Context()
	store := func(v string) {
		t.Helper()
		if !fill(t, o, claim(t, g, "k", lease.Found{}), v) {
			t.Fatalf("could not store %s", v)
		}
	}
	store("on")
	r := g.Renew(ctx, "k", look(t, g, "k"))
	if r.Claim == nil || r.Err != nil {
		t.Fatalf("renew: %+v", r)
	}
	if now := g.Claim(ctx, "k", lease.Found{}); now.Claim != nil {
		t.Error("somebody else may load what is being renewed")
	}
	// It reads "off", which is then over.
	expect.OK(t, g.Delete(ctx, []string{"k"})[0])
	store("on")
	if fill(t, o, r.Claim, "off") {
		t.Error("a renewal stored over what was deleted and loaded anew, as the bytes are the same")
	}
	if body(t, g, "k") != "on" {
		t.Errorf("found %s", body(t, g, "k"))
	}

	expect.OK(t, g.Delete(ctx, []string{"k"})[0])
	store("off")
	r = g.Renew(ctx, "k", look(t, g, "k"))
	expect.OK(t, r.Claim.Release(ctx))
	if n := rdb.Exists(ctx, lease.SiblingName("k")).Val(); n != 0 {
		t.Error("a renewal that was released left its lease")
	}
}

// A value that comes to its end while it is renewed is not loaded twice.
func TestAPlainRenewalOutlivesItsValue(t *testing.T) {
	_, rdb := lossy(t, "", 0, false)
	o := lease.Options{Redis: rdb, Timeout: 5 * time.Second, Plain: true}
	g, ctx := lease.New(o), t.Context()
	fill(t, o, claim(t, g, "k", lease.Found{}), "v")
	r := g.Renew(ctx, "k", look(t, g, "k"))
	expect.OK(t, rdb.PExpire(ctx, "k", -1).Err())
	if !fill(t, o, r.Claim, "w") || body(t, g, "k") != "w" {
		t.Error("what was renewed is not stored, as the old value has ended")
	}
}

// Redis's clock is set back ten minutes under a lease whose holder has died.
func TestALeaseThatCannotEndIsTakenOver(t *testing.T) {
	for _, plain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			rdb := mini(t)
			o := lease.Options{Redis: rdb, Timeout: time.Second, Plain: plain}
			g, ctx := lease.New(o), t.Context()
			claim(t, g, "k", lease.Found{})
			lock := "k"
			if plain {
				lock = lease.SiblingName("k")
			}
			expect.OK(t, rdb.PExpire(ctx, lock, 10*time.Minute).Err())
			begun := time.Now()
			a := g.Acquire(ctx, ctx, lease.Want{Key: "k"}, nil)
			if took := time.Since(begun); a.Standing != lease.Mine || took > 3*lease.TTL {
				t.Fatalf("plain %v: %+v after %v", plain, a, took)
			}
			if !fill(t, o, a.Claim, "v") || body(t, g, "k") != "v" {
				t.Errorf("plain %v: it could not be filled", plain)
			}
		})
	}
}

// The holder lives: its beat puts the end right.
func TestALeaseThatIsKeptIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := mini(t)
		o := lease.Options{Redis: rdb, Timeout: time.Second}
		g, ctx := lease.New(o), t.Context()
		c := claim(t, g, "k", lease.Found{})
		expect.OK(t, rdb.PExpire(ctx, "k", 10*time.Minute).Err())
		stop := make(chan struct{})
		go func() {
			for range 15 {
				time.Sleep(lease.Beat)
				c.Keep(ctx)
			}
			fill(t, o, c, "v")
			close(stop)
		}()
		if a := g.Acquire(ctx, ctx, lease.Want{Key: "k"}, nil); a.Standing != lease.Changed || string(a.Body) != "v" {
			t.Errorf("%+v", a)
		}
		<-stop
	})
}
