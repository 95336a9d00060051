package navsession_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/navsession"
	"github.com/mayflycache/mayfly/redistest"
)

// "The latest N pages such that each was not viewed more than 60 seconds after the previous", to the millisecond.
func TestTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, rdb := t.Context(), redistest.Start(t).Client()
		v := visits(t, rdb, 3)
		for i := range 5 { // five minutes, and never idle for longer than one
			expect.OK(t, v.Record(ctx, "ada", fmt.Sprint("/", i)))
			time.Sleep(gap)
		}
		wants(t, v, "ada", "/4 /3 /2")
		time.Sleep(time.Millisecond)
		wants(t, v, "ada", "")
		expect.OK(t, v.Record(ctx, "ada", "/5"))
		wants(t, v, "ada", "/5")

		time.Sleep(gap + time.Millisecond) // nobody looks meanwhile
		expect.OK(t, v.Record(ctx, "ada", "/6"))
		wants(t, v, "ada", "/6")

		c := expect.Value(navsession.NewCounter(ns[int64](t, rdb), navsession.CounterOptions{RedisTimeout: patient}))(t)
		for _, pause := range []struct {
			length time.Duration
			want   int64
		}{{0, 1}, {gap, 2}, {gap, 3}, {gap + time.Millisecond, 1}} {
			time.Sleep(pause.length)
			if n := expect.Value(c.Record(ctx, "bob"))(t); n != pause.want {
				t.Errorf("after %v it is view %d of the visit, want %d", pause.length, n, pause.want)
			}
		}
	})
}

// A real server gives the list its end at the moment of the push, neither before nor after.
func TestTheGapOfARealRedis(t *testing.T) {
	rdb := realredis.Start(t, realredis.Options{}).Client()
	ctx, space := t.Context(), ns[string](t, rdb)
	v := expect.Value(navsession.New(space, navsession.Options{Pages: 3, RedisTimeout: patient}))(t)
	now := func() time.Time { return expect.Value(rdb.Time(ctx).Result())(t) }
	for i := range 3 {
		before := now()
		expect.OK(t, v.Record(ctx, "ada", fmt.Sprint("/", i)))
		end, after := time.UnixMilli(rdb.PExpireTime(ctx, space.Prefix+"ada").Val().Milliseconds()), now()
		if end.Before(before.Truncate(time.Millisecond).Add(space.TTL)) || end.After(after.Add(space.TTL)) {
			t.Errorf("recorded between %v and %v, ends at %v", before, after, end)
		}
	}
	// The page after the end begins a list.
	short := space
	short.TTL = 200 * time.Millisecond
	expect.OK(t, expect.Value(navsession.New(short, navsession.Options{Pages: 3, RedisTimeout: patient}))(t).Record(ctx, "ada", "/3"))
	for tick := time.NewTicker(time.Millisecond); rdb.Exists(ctx, space.Prefix+"ada").Val() > 0; {
		<-tick.C
	}
	expect.OK(t, v.Record(ctx, "ada", "/9"))
	wants(t, v, "ada", "/9")
}

// A view sends the documentation's transaction, in one trip. The first view of a visit also asks what is there.
func TestTheTransaction(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client()
	v := expect.Value(navsession.New(mayfly.Namespace[int, string]{
		Name: "visits", Redis: rdb, Prefix: "pageviews.user:", TTL: gap,
	}, navsession.Options{Pages: 20, RedisTimeout: patient}))(t)
	expect.OK(t, v.Record(t.Context(), 1, "connects"))
	srv.ClearLog()
	trips := &tripCounter{}
	rdb.AddHook(trips)
	for range 2 {
		expect.OK(t, v.Record(t.Context(), 1001, "http://example.com/"))
	}
	want := []string{
		"multi",
		"pexpiretime pageviews.user:1001",
		"rpush pageviews.user:1001 http://example.com/",
		"ltrim pageviews.user:1001 -20 -1",
		"pexpire pageviews.user:1001 60000",
		"exec",

		"multi",
		"rpush pageviews.user:1001 http://example.com/",
		"ltrim pageviews.user:1001 -20 -1",
		"pexpire pageviews.user:1001 60000",
		"exec",
	}
	if log := srv.Log(); !slices.Equal(log, want) || trips.n != 2 {
		t.Errorf("%d trips, sent\n%s\nwant\n%s", trips.n, strings.Join(log, "\n"), strings.Join(want, "\n"))
	}
}

// A visit that is over is asked about again: the key may be somebody else's by now.
func TestAKeyThatChangedHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.Start(t).Client()
		v, full := visits(t, rdb, 3), ns[string](t, rdb).Prefix+"ada"
		expect.OK(t, v.Record(t.Context(), "ada", "/1"))
		time.Sleep(gap - time.Millisecond)
		expect.OK(t, v.Record(t.Context(), "ada", "/2"))
		time.Sleep(gap + time.Millisecond)
		expect.OK(t, rdb.Set(t.Context(), full, "somebody else's", 0).Err())
		for range 2 {
			if err := v.Record(t.Context(), "ada", "/3"); err == nil {
				t.Error("recorded in a string")
			}
		}
		if left := rdb.PTTL(t.Context(), full).Val(); left != -1 {
			t.Errorf("it ends in %v", left)
		}
	})
}

// A page whose reply is lost is not sent again, though the client would.
func TestALostReply(t *testing.T) {
	srv := redistest.Start(t)
	rdb, events := srv.Client(), &expect.Events{}
	if rdb.Options().MaxRetries == 0 {
		t.Fatal("the client does not repeat anything, so this shows nothing")
	}
	ctx, space := t.Context(), ns[string](t, rdb)
	space.Observer = events
	v := expect.Value(navsession.New(space, navsession.Options{Pages: 9, RedisTimeout: patient}))(t)
	c := expect.Value(navsession.NewCounter(ns[int64](t, rdb), navsession.CounterOptions{RedisTimeout: patient}))(t)
	expect.OK(t, v.Record(ctx, "ada", "/1"))

	srv.DropReply("exec")
	if err := v.Record(ctx, "ada", "/2"); !errors.Is(err, mayfly.ErrUnknownOutcome) || !strings.Contains(err.Error(), `record a page of "TestALostReply:ada"`) {
		t.Errorf("a lost reply is %v", err)
	}
	wants(t, v, "ada", "/2 /1") // it was done, once
	srv.DropReply("exec")
	if _, err := c.Record(ctx, "bob"); !errors.Is(err, mayfly.ErrUnknownOutcome) {
		t.Errorf("a lost reply is %v", err)
	}
	if n := expect.Value(c.Len(ctx, "bob"))(t); n != 1 {
		t.Errorf("counted %d times", n)
	}
	srv.DropReply("ltrim")
	if err := v.End(ctx, "ada"); !errors.Is(err, mayfly.ErrUnknownOutcome) {
		t.Errorf("a lost reply is %v", err)
	}
	if events.Count(mayfly.KindWrite, mayfly.OutcomeOK) != 1 || events.Count(mayfly.KindWrite, mayfly.OutcomeFailed) != 1 {
		t.Errorf("the events are %+v", events.All())
	}
}

// Down is an error, and never "no pages".
func TestRedisIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		v := visits(t, srv.Client(), 3)
		expect.OK(t, v.Record(t.Context(), "ada", "/1"))
		srv.Refuse(true)
		srv.KillConnections()
		err := v.Record(t.Context(), "ada", "/2")
		if err == nil || errors.Is(err, mayfly.ErrNotFound) {
			t.Errorf("Record: %v", err)
		}
		if pages, err := v.Recent(t.Context(), "ada", 3); err == nil || pages != nil {
			t.Errorf("Recent: %v, %v", pages, err)
		}
		if _, err := v.Len(t.Context(), "ada"); err == nil {
			t.Error("Len: no error")
		}
		srv.Refuse(false)
		time.Sleep(gap / 2) // go-redis has given up its dials
		wants(t, v, "ada", "/1")
	})
}

// A server that refuses one command of the transaction does none of them: no list is left without an end.
func TestATransactionThatIsRefused(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client()
	v := visits(t, rdb, 3)
	srv.FailNext("pexpire", "OOM command not allowed when used memory > 'maxmemory'.")
	if err := v.Record(t.Context(), "ada", "/1"); err == nil || errors.Is(err, mayfly.ErrUnknownOutcome) {
		t.Errorf("got error %v", err)
	}
	wants(t, v, "ada", "")
}

func TestBadInput(t *testing.T) {
	rdb := redistest.Start(t).Client()
	good, counters := ns[string](t, rdb), ns[int64](t, rdb)
	local := expect.Value(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{good.Prefix}, MaxEntries: 1}))(t)
	defer local.Close(t.Context())
	build := func(damage func(*mayfly.Namespace[string, string]), pages int) error {
		space := good
		damage(&space)
		_, err := navsession.New(space, navsession.Options{Pages: pages})
		return err
	}
	nothing := func(*mayfly.Namespace[string, string]) {}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no pages":       {build(nothing, 0), "navsession: Options.Pages must be at least 1, got 0"},
		"negative pages": {build(nothing, -1), "navsession: Options.Pages must be at least 1, got -1"},
		"no TTL":         {build(func(n *mayfly.Namespace[string, string]) { n.TTL = 0 }, 1), "navsession: Namespace.TTL must be at least 1ms, got 0s"},
		"jitter":         {build(func(n *mayfly.Namespace[string, string]) { n.Jitter = jitter.Default }, 1), "navsession: Namespace.Jitter must be zero"},
		"a floor":        {build(func(n *mayfly.Namespace[string, string]) { n.Jitter.Floor = time.Hour }, 1), "navsession: Namespace.Jitter must be zero"},
		"a local tier":   {build(func(n *mayfly.Namespace[string, string]) { n.Local = local }, 1), "navsession: Namespace.Local must be nil"},
		"plain":          {build(func(n *mayfly.Namespace[string, string]) { n.Plain = true }, 1), "navsession: Namespace.Plain must be false"},
		"clone":          {build(func(n *mayfly.Namespace[string, string]) { n.Clone = strings.Clone }, 1), "navsession: Namespace.Clone must be nil"},
		"cost":           {build(func(n *mayfly.Namespace[string, string]) { n.Cost = func(string) int { return 1 } }, 1), "navsession: Namespace.Cost must be nil"},
		"related, plain": {func() error {
			plain := good
			plain.Plain = true
			_, err := navsession.NewRelated(plain, navsession.RelatedOptions{})
			return err
		}(), "navsession: Namespace.Plain must be false"},
		"pages that have no text": {func() error {
			_, err := navsession.New(ns[chan int](t, rdb), navsession.Options{Pages: 1})
			return err
		}(), "navsession: Namespace.Codec: JSON cannot carry a chan int"},
		"a counter's cost": {func() error {
			costly := counters
			costly.Cost = func(int64) int { return 8 }
			_, err := navsession.NewCounter(costly, navsession.CounterOptions{})
			return err
		}(), "navsession: Namespace.Cost must be nil"},
		"a counter's codec": {func() error {
			counters.Codec = mayfly.JSON[int64]{}
			_, err := navsession.NewCounter(counters, navsession.CounterOptions{})
			return err
		}(), "navsession: Namespace.Codec must be nil"},
		"kept": {func() error {
			_, err := navsession.NewRelated(good, navsession.RelatedOptions{Kept: -1})
			return err
		}(), "navsession: RelatedOptions.Kept must not be negative, got -1"},
		"min visits": {func() error {
			_, err := navsession.NewRelated(good, navsession.RelatedOptions{MinVisits: -1})
			return err
		}(), "navsession: RelatedOptions.MinVisits must not be negative, got -1"},
		"per visit": {func() error {
			_, err := navsession.NewRelated(good, navsession.RelatedOptions{PerVisit: -2})
			return err
		}(), "navsession: RelatedOptions.PerVisit must not be negative, got -2"},
		"related's timeout": {func() error {
			_, err := navsession.NewRelated(good, navsession.RelatedOptions{RedisTimeout: -1})
			return err
		}(), "navsession: RelatedOptions.RedisTimeout must be at least 1ms, got -1ns"},
		"counter's timeout": {func() error {
			_, err := navsession.NewCounter(ns[int64](t, rdb), navsession.CounterOptions{RedisTimeout: 5})
			return err
		}(), "navsession: CounterOptions.RedisTimeout must be at least 1ms, got 5ns"},
		"timeout": {func() error {
			_, err := navsession.New(good, navsession.Options{Pages: 1, RedisTimeout: -1})
			return err
		}(), "navsession: Options.RedisTimeout must be at least 1ms, got -1ns"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, c.err, c.want)
		}
	}
}
