package sliding_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/backends"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

type cart struct {
	Items []string
	Count int
}

const idle = 30 * time.Minute

func namespace(rdb redis.UniversalClient) mayfly.Namespace[string, cart] {
	return mayfly.Namespace[string, cart]{Name: "carts", Redis: rdb, Prefix: "cart:", TTL: idle}
}

// ways are the ways in which a store works; each promises what the others do.
var ways = []struct {
	name string
	opt  sliding.Options
}{
	{"two commands", sliding.Options{}},
	{"GETEX", sliding.Options{Atomic: true}},
	{"seldom renewed", sliding.Options{TouchBelow: 0.5}},
	{"MaxAge", sliding.Options{MaxAge: 12 * time.Hour}},
	{"MaxAge, seldom renewed", sliding.Options{MaxAge: 12 * time.Hour, TouchBelow: 0.5}},
}

// inEachWay runs test on every backend with each way, of values with a header and, where that can be, of plain ones.
func inEachWay(t *testing.T, test func(t *testing.T, s *sliding.Store[string, cart], rdb redis.UniversalClient)) {
	backends.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, way := range ways {
			for _, plain := range []bool{false, true} {
				if plain && way.opt.MaxAge > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s, plain %v", way.name, plain), func(t *testing.T) {
					ns := namespace(rdb)
					ns.Plain = plain
					ns.Prefix = t.Name() + ":"
					test(t, mayfly.Must(sliding.New(ns, way.opt)), rdb)
					endless(t, rdb, ns.Prefix)
				})
			}
		}
	})
}

// endless complains of values of a store that have no TTL.
func endless(t *testing.T, rdb redis.UniversalClient, prefix string) {
	for _, key := range rdb.Keys(t.Context(), prefix+"*").Val() {
		if left := rdb.PTTL(t.Context(), key).Val(); left == -1 && rdb.Type(t.Context(), key).Val() == "string" {
			t.Errorf("%s has no end", key)
		}
	}
}

func want(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheLifeOfAValue(t *testing.T) {
	inEachWay(t, func(t *testing.T, s *sliding.Store[string, cart], rdb redis.UniversalClient) {
		ctx := t.Context()
		_, err := s.Get(ctx, "ada")
		want(t, err, mayfly.ErrNotFound)
		_, err = s.Peek(ctx, "ada")
		want(t, err, mayfly.ErrNotFound)
		_, err = s.TTL(ctx, "ada")
		want(t, err, mayfly.ErrNotFound)
		want(t, s.Touch(ctx, "ada"), mayfly.ErrNotFound)
		_, err = s.Update(ctx, "ada", func(c cart) (cart, error) { return c, nil })
		want(t, err, mayfly.ErrNotFound)

		want(t, s.Create(ctx, "ada", cart{Count: 1}), nil)
		want(t, s.Create(ctx, "ada", cart{Count: 2}), sliding.ErrExists)
		if c, err := s.Get(ctx, "ada"); c.Count != 1 || err != nil {
			t.Errorf("got %+v, %v", c, err)
		}
		want(t, s.Set(ctx, "ada", cart{Count: 3}), nil)
		c, err := s.Update(ctx, "ada", func(c cart) (cart, error) { c.Count++; return c, nil })
		if c.Count != 4 || err != nil {
			t.Errorf("updated to %+v, %v", c, err)
		}
		no := errors.New("no")
		_, err = s.Update(ctx, "ada", func(c cart) (cart, error) { return cart{}, no })
		want(t, err, no)
		if c, err := s.Peek(ctx, "ada"); c.Count != 4 || err != nil {
			t.Errorf("got %+v, %v", c, err)
		}
		if left, err := s.TTL(ctx, "ada"); left < idle-time.Minute || left > idle || err != nil {
			t.Errorf("%v left, %v", left, err)
		}
		want(t, s.Touch(ctx, "ada"), nil)
		alive, err := s.TouchMany(ctx, "ada", "bob")
		if !alive["ada"] || alive["bob"] || err != nil {
			t.Errorf("alive: %v, %v", alive, err)
		}

		want(t, s.Rotate(ctx, "bob", "cid"), mayfly.ErrNotFound)
		want(t, s.Rotate(ctx, "ada", "cid"), nil)
		_, err = s.Get(ctx, "ada")
		want(t, err, mayfly.ErrNotFound)
		if c, err := s.Get(ctx, "cid"); c.Count != 4 || err != nil {
			t.Errorf("got %+v, %v", c, err)
		}
		want(t, s.Create(ctx, "dan", cart{}), nil)
		want(t, s.Rotate(ctx, "dan", "cid"), sliding.ErrExists)

		seen := map[string]int{}
		for item, err := range s.All(ctx) {
			if err != nil {
				t.Error(err)
			}
			seen[item.Key] = item.Value.Count
		}
		if len(seen) != 2 || seen["cid"] != 4 {
			t.Errorf("all: %v", seen)
		}
		want(t, s.Delete(ctx, "cid", "dan", "nobody"), nil)
		for item := range s.All(ctx) {
			t.Errorf("%q is still there", item.Key)
		}
	})
}

// Whatever is under a key of somebody else's stays, and is named.
func TestAListIsLeftAlone(t *testing.T) {
	inEachWay(t, func(t *testing.T, s *sliding.Store[string, cart], rdb redis.UniversalClient) {
		ctx := t.Context()
		key := t.Name() + ":ada"
		rdb.RPush(ctx, key, "a")
		calls := map[string]func() error{
			"get":    func() error { _, err := s.Get(ctx, "ada"); return err },
			"peek":   func() error { _, err := s.Peek(ctx, "ada"); return err },
			"create": func() error { return s.Create(ctx, "ada", cart{}) },
			"set":    func() error { return s.Set(ctx, "ada", cart{}) },
			"update": func() error { _, err := s.Update(ctx, "ada", func(c cart) (cart, error) { return c, nil }); return err },
			"rotate": func() error { return s.Rotate(ctx, "ada", "bob") },
		}
		for what, call := range calls {
			if err := call(); err == nil || errors.Is(err, mayfly.ErrNotFound) || !errors.Is(err, sliding.ErrExists) && !strings.Contains(err.Error(), "holds a list") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got := rdb.LRange(ctx, key, 0, -1).Val(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the list is %v", got)
		}
	})
}

func TestNoUpdateIsLost(t *testing.T) {
	inEachWay(t, func(t *testing.T, s *sliding.Store[string, cart], rdb redis.UniversalClient) {
		ctx := t.Context()
		want(t, s.Set(ctx, "ada", cart{}), nil)
		const workers, each = 8, 10
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range each {
					if _, err := s.Update(ctx, "ada", func(c cart) (cart, error) { c.Count++; return c, nil }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if c, err := s.Get(ctx, "ada"); c.Count != workers*each || err != nil {
			t.Errorf("got %+v, %v", c, err)
		}
	})
}

// inTime runs test in a bubble for each way.
func inTime(t *testing.T, test func(t *testing.T, s *sliding.Store[string, cart], o sliding.Options, srv *redistest.Server)) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			backends.Bubble(t, func(t *testing.T, srv *redistest.Server) {
				test(t, mayfly.Must(sliding.New(namespace(srv.Client()), way.opt)), way.opt, srv)
			})
		})
	}
}

func TestAUsedValueLives(t *testing.T) {
	inTime(t, func(t *testing.T, s *sliding.Store[string, cart], o sliding.Options, _ *redistest.Server) {
		want(t, s.Create(t.Context(), "ada", cart{}), nil)
		pause := idle - time.Millisecond
		if o.TouchBelow > 0 { // an access at the start of its life did not renew it
			pause = time.Duration(o.TouchBelow*float64(idle)) - time.Millisecond
		}
		for range 20 {
			time.Sleep(pause)
			if _, err := s.Get(t.Context(), "ada"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(idle + time.Millisecond)
		_, err := s.Get(t.Context(), "ada")
		want(t, err, mayfly.ErrNotFound)
	})
}

func TestMaxAgeIsExact(t *testing.T) {
	const age = 12 * time.Hour
	inTime(t, func(t *testing.T, s *sliding.Store[string, cart], o sliding.Options, srv *redistest.Server) {
		if o.MaxAge == 0 {
			return
		}
		ctx := t.Context()
		use := map[string]func() error{
			"get":    func() error { _, err := s.Get(ctx, "k"); return err },
			"touch":  func() error { return s.Touch(ctx, "k") },
			"set":    func() error { return s.Set(ctx, "k", cart{}) },
			"update": func() error { _, err := s.Update(ctx, "k", func(c cart) (cart, error) { return c, nil }); return err },
			"rotate": func() error { return errors.Join(s.Rotate(ctx, "k", "other"), s.Rotate(ctx, "other", "k")) },
		}
		for what, use := range use {
			begun := time.Now()
			want(t, s.Create(ctx, "k", cart{}), nil)
			for time.Since(begun) < age-10*time.Minute {
				time.Sleep(10 * time.Minute)
				if err := use(); err != nil {
					t.Fatalf("%s after %v: %v", what, time.Since(begun), err)
				}
			}
			time.Sleep(age - time.Since(begun))
			if _, err := s.Peek(ctx, "k"); err != nil {
				t.Errorf("%s: gone before its time: %v", what, err)
			}
			time.Sleep(2 * time.Millisecond)
			if what == "set" { // there is nothing to replace: a new life
				if left := srv.Client().PTTL(ctx, "cart:k").Val(); left != -2 {
					t.Errorf("set: %v left beyond its time", left)
				}
			} else if err := use(); !errors.Is(err, mayfly.ErrNotFound) {
				t.Errorf("%s beyond its time: %v", what, err)
			}
			s.Delete(ctx, "k", "other")
		}
	})
}

// A value that was stored before there was a MaxAge gets its end at the first access.
func TestMaxAgeComesLater(t *testing.T) {
	backends.Bubble(t, func(t *testing.T, srv *redistest.Server) {
		ctx := t.Context()
		before := mayfly.Must(sliding.New(namespace(srv.Client()), sliding.Options{}))
		after := mayfly.Must(sliding.New(namespace(srv.Client()), sliding.Options{MaxAge: time.Hour}))
		want(t, before.Create(ctx, "k", cart{Count: 7}), nil)
		for range 5 {
			c, err := after.Get(ctx, "k")
			if c.Count != 7 || err != nil {
				t.Fatalf("got %+v, %v", c, err)
			}
			time.Sleep(10 * time.Minute)
		}
		time.Sleep(10*time.Minute + 2*time.Millisecond)
		_, err := after.Get(ctx, "k")
		want(t, err, mayfly.ErrNotFound)

		srv.Client().Set(ctx, "cart:k", "{}", idle)
		if _, err := after.Get(ctx, "k"); err == nil || !strings.Contains(err.Error(), "no room for an end") {
			t.Errorf("a plain value: %v", err)
		}
	})
}

// A hot value costs no write per read, and no command per read with a local tier.
func TestSeldomRenewed(t *testing.T) {
	for _, local := range []bool{false, true} {
		for _, age := range []time.Duration{0, 12 * time.Hour} {
			t.Run(fmt.Sprintf("local %v, MaxAge %v", local, age), func(t *testing.T) {
				backends.Bubble(t, func(t *testing.T, srv *redistest.Server) {
					ns := namespace(srv.Client())
					if local {
						l := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: srv.Client(), Prefixes: []string{"cart:"}, MaxEntries: 100}))
						defer l.Close(context.Background())
						ns.Local = l
						defer func() {
							if s := l.Stats(); s.Hits*100 < (s.Hits+s.Misses)*95 {
								t.Errorf("%d local hits, %d misses", s.Hits, s.Misses)
							}
						}()
					}
					s := mayfly.Must(sliding.New(ns, sliding.Options{TouchBelow: 0.5, MaxAge: age}))
					want(t, s.Create(t.Context(), "ada", cart{Count: 1}), nil)
					srv.ClearLog()
					const reads = 5000
					for range reads {
						time.Sleep(time.Second)
						if c, err := s.Get(t.Context(), "ada"); c.Count != 1 || err != nil {
							t.Fatalf("got %+v, %v", c, err)
						}
					}
					renewals := 0
					for _, c := range srv.Log() {
						if strings.HasPrefix(c, "pexpire") || strings.HasPrefix(c, "evalsha") && local {
							renewals++
						}
					}
					if most := 30; renewals > most {
						t.Errorf("%d renewals in %d reads", renewals, reads)
					}
					synctest.Wait()
				})
			})
		}
	}
}

func TestALostReply(t *testing.T) {
	backends.Bubble(t, func(t *testing.T, srv *redistest.Server) {
		ctx := t.Context()
		for _, way := range ways {
			s := mayfly.Must(sliding.New(namespace(srv.Client()), way.opt))
			s.Create(ctx, "warm", cart{}) // the scripts are known
			s.Update(ctx, "warm", func(c cart) (cart, error) { return c, nil })
			drop := func(commands ...string) {
				for _, c := range commands {
					srv.DropReply(c)
				}
			}
			command := "set"
			if way.opt.MaxAge > 0 {
				command = "evalsha"
			}
			drop(command)
			if err := s.Create(ctx, "ada", cart{Count: 1}); err != nil { // the repetition knows its own work
				t.Errorf("%s: create: %v", way.name, err)
			}
			drop("evalsha")
			c, err := s.Update(ctx, "ada", func(c cart) (cart, error) { c.Count++; return c, nil })
			if c.Count != 2 || err != nil {
				t.Errorf("%s: update: %+v, %v", way.name, c, err)
			}
			if c, err := s.Peek(ctx, "ada"); c.Count != 2 || err != nil {
				t.Errorf("%s: got %+v, %v", way.name, c, err)
			}
			s.Delete(ctx, "ada", "warm")
		}
		ns := namespace(srv.Client())
		ns.Plain = true
		s := mayfly.Must(sliding.New(ns, sliding.Options{}))
		srv.DropReply("set")
		want(t, s.Create(ctx, "ada", cart{}), mayfly.ErrUnknownOutcome) // nothing tells whose value that is
		srv.Refuse(true)
		srv.KillConnections()
		for what, err := range map[string]error{
			"create": s.Create(ctx, "bob", cart{}), "set": s.Set(ctx, "bob", cart{}), "delete": s.Delete(ctx, "bob"),
		} {
			if err == nil || errors.Is(err, mayfly.ErrNotFound) || errors.Is(err, sliding.ErrExists) {
				t.Errorf("%s without a Redis: %v", what, err)
			}
		}
		if _, err := s.Get(ctx, "bob"); err == nil || errors.Is(err, mayfly.ErrNotFound) {
			t.Errorf("get without a Redis: %v", err)
		}
	})
}

func TestWhatIsNotAValueOfThisStore(t *testing.T) {
	backends.Bubble(t, func(t *testing.T, srv *redistest.Server) {
		ctx, rdb := t.Context(), srv.Client()
		s := mayfly.Must(sliding.New(namespace(rdb), sliding.Options{}))
		rdb.Set(ctx, "cart:python", `{"Count":5}`, idle)
		if c, err := s.Get(ctx, "python"); c.Count != 5 || err != nil {
			t.Errorf("what json.dumps wrote: %+v, %v", c, err)
		}
		rdb.Set(ctx, "cart:noise", "noise", idle)
		other := namespace(rdb)
		other.Codec = mayfly.JSON[cart]{Schema: 2}
		mayfly.Must(sliding.New(other, sliding.Options{})).Set(ctx, "schema", cart{})
		rdb.Set(ctx, "cart:lease", "\xc1mfy\x01\x02\x00\x00\x00\x00\x00\x18\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c", idle)
		for key, says := range map[string]string{"noise": "invalid character", "schema": `another codec than "json"`, "lease": "another kind (lease)"} {
			if _, err := s.Get(ctx, key); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v", key, err)
			}
			if _, err := s.Update(ctx, key, func(c cart) (cart, error) { return c, nil }); err == nil {
				t.Errorf("%s was replaced", key)
			}
		}
		wrong := 0
		for _, err := range s.All(ctx) {
			if err != nil {
				wrong++
			}
		}
		if wrong != 3 {
			t.Errorf("%d wrong values of 4", wrong)
		}
	})
}

func TestBadOptions(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	good := namespace(rdb)
	for says, change := range map[string]func(ns *mayfly.Namespace[string, cart], o *sliding.Options){
		"Namespace.TTL":               func(ns *mayfly.Namespace[string, cart], _ *sliding.Options) { ns.TTL = 0 },
		"Namespace.Prefix":            func(ns *mayfly.Namespace[string, cart], _ *sliding.Options) { ns.Prefix = "" },
		"Namespace.Jitter":            func(ns *mayfly.Namespace[string, cart], _ *sliding.Options) { ns.Jitter = jitter.Default },
		"Options.MaxAge -1s":          func(_ *mayfly.Namespace[string, cart], o *sliding.Options) { o.MaxAge = -time.Second },
		"shorter than Namespace.TTL":  func(_ *mayfly.Namespace[string, cart], o *sliding.Options) { o.MaxAge = time.Minute },
		"without Namespace.Plain":     func(ns *mayfly.Namespace[string, cart], o *sliding.Options) { ns.Plain, o.MaxAge = true, time.Hour },
		"Atomic is set":               func(_ *mayfly.Namespace[string, cart], o *sliding.Options) { o.Atomic, o.MaxAge = true, time.Hour },
		"TouchBelow must be 0 to 1":   func(_ *mayfly.Namespace[string, cart], o *sliding.Options) { o.TouchBelow = 1.5 },
		"TouchBelow must be 0 to 1, ": func(_ *mayfly.Namespace[string, cart], o *sliding.Options) { o.TouchBelow = math.NaN() },
		"Atomic renews":               func(_ *mayfly.Namespace[string, cart], o *sliding.Options) { o.Atomic, o.TouchBelow = true, 0.5 },
	} {
		ns, o := good, sliding.Options{}
		change(&ns, &o)
		if _, err := sliding.New(ns, o); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "must be at least 1ms, got ", ""), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	s := mayfly.Must(sliding.New(good, sliding.Options{}))
	if err := s.Set(t.Context(), "", cart{}); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty key: %v", err)
	}
}
