package sliding_test

import (
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
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

type cart struct {
	Items []string
	Count int
}

const idle = 30 * time.Minute

// patient is the RedisTimeout of tests that may meet a slow machine, or whose faults take time.
const patient = 10 * time.Second

func namespace(rdb redis.UniversalClient) mayfly.Namespace[string, cart] {
	return mayfly.Namespace[string, cart]{Name: "carts", Redis: rdb, Prefix: "cart:", TTL: idle}
}

// ways are the ways in which a store works; each promises what the others do.
var ways = []struct {
	name string
	opt  sliding.Options
}{
	{"two commands", sliding.Options{RedisTimeout: patient}},
	{"GETEX", sliding.Options{RedisTimeout: patient, Atomic: true}},
	{"seldom renewed", sliding.Options{RedisTimeout: patient, TouchBelow: 0.5}},
	{"MaxAge", sliding.Options{RedisTimeout: patient, MaxAge: 12 * time.Hour}},
	{"MaxAge, seldom renewed", sliding.Options{RedisTimeout: patient, MaxAge: 12 * time.Hour, TouchBelow: 0.5}},
}

// inEachWay runs test on every backend in each way, with values with a header and, where possible, with plain ones.
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

// endless complains about a store's values without a TTL.
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
		want(t, s.Create(ctx, "ada", cart{Count: 2}), mayfly.ErrExists)
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
		want(t, s.Rotate(ctx, "dan", "cid"), mayfly.ErrExists)

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

// A value that somebody else stored under a key stays, and the error names it.
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
			if err := call(); err == nil || errors.Is(err, mayfly.ErrNotFound) || !errors.Is(err, mayfly.ErrExists) && !strings.Contains(err.Error(), "holds a list") {
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
		workers, each := 8, effort.Times(3, 20)
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

func TestValuesOfOtherPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ctx, rdb := t.Context(), srv.Client()
		s := mayfly.Must(sliding.New(namespace(rdb), sliding.Options{RedisTimeout: patient}))
		rdb.Set(ctx, "cart:python", `{"Count":5}`, idle)
		if c, err := s.Get(ctx, "python"); c.Count != 5 || err != nil {
			t.Errorf("what json.dumps wrote: %+v, %v", c, err)
		}
		rdb.Set(ctx, "cart:noise", "noise", idle)
		other := namespace(rdb)
		other.Codec = mayfly.JSON[cart]{Schema: 2}
		mayfly.Must(sliding.New(other, sliding.Options{RedisTimeout: patient})).Set(ctx, "schema", cart{})
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
		"Namespace.Prefix":            func(ns *mayfly.Namespace[string, cart], _ *sliding.Options) { ns.Name, ns.Prefix = "", "" },
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
