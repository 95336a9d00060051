package navsession_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/navsession"
)

// behaviours hold on every backend. Each uses keys of its own, and waits for nothing.
var behaviours = []struct {
	name string
	test func(t *testing.T, rdb redis.UniversalClient)
}{
	{"the latest pages, the newest first", theLatestPages},
	{"a typed page", aTypedPage},
	{"every page gives the whole TTL again", everyPageGivesTheWholeTTL},
	{"End", end},
	{"a counter", aCounter},
	{"a key of another kind is left as it was", aKeyOfAnotherKind},
	{"a page that the codec cannot read", aPageThatTheCodecCannotRead},
	{"an empty user touches nothing", anEmptyUser},
	{"related pages", relatedPages},
	{"related pages are bounded", relatedPagesAreBounded},
}

func TestBackends(t *testing.T) {
	for _, b := range append(backends.All, backends.DoubleCluster) {
		t.Run(b.Name, func(t *testing.T) {
			rdb := b.Open(t)
			for _, x := range behaviours {
				t.Run(x.name, func(t *testing.T) { x.test(t, rdb) })
			}
		})
	}
}

func theLatestPages(t *testing.T, rdb redis.UniversalClient) {
	ctx, v := t.Context(), visits(t, rdb, 3)
	wants(t, v, "ada", "")
	for i, want := range []string{"/0", "/1 /0", "/2 /1 /0", "/3 /2 /1", "/4 /3 /2"} {
		expect.OK(t, v.Record(ctx, "ada", fmt.Sprint("/", i)))
		wants(t, v, "ada", want)
	}
	wants(t, v, "bob", "")
	if got := expect.Value(v.Recent(ctx, "ada", 2))(t); strings.Join(got, " ") != "/4 /3" {
		t.Errorf("the latest two are %v", got)
	}
	for _, n := range []int{0, -1} {
		if _, err := v.Recent(ctx, "ada", n); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`:ada": n must be at least 1, got %d`, n)) {
			t.Errorf("n of %d: %v", n, err)
		}
	}
}

func aTypedPage(t *testing.T, rdb redis.UniversalClient) {
	ctx := t.Context()
	v := expect.Value(navsession.New(ns[navsession.Page](t, rdb), navsession.Options{Pages: 3, RedisTimeout: patient}))(t)
	want := navsession.Page{URL: "/shoes?q=<7>&r", Title: "Shoes \u2603", Time: time.Date(2026, 11, 21, 7, 0, 0, 123456789, time.UTC)}
	expect.OK(t, v.Record(ctx, "ada", want))
	expect.OK(t, v.Record(ctx, "ada", navsession.Page{}))
	got := expect.Value(v.Recent(ctx, "ada", 3))(t)
	if len(got) != 2 || got[0] != (navsession.Page{}) || got[1] != want {
		t.Errorf("got %+v", got)
	}
}

func everyPageGivesTheWholeTTL(t *testing.T, rdb redis.UniversalClient) {
	ctx, v := t.Context(), visits(t, rdb, 3)
	full := ns[string](t, rdb).Prefix + "ada"
	for range 3 {
		expect.OK(t, v.Record(ctx, "ada", "/"))
		if left := rdb.PTTL(ctx, full).Val(); left <= gap/2 || left > gap {
			t.Errorf("%v left, want %v", left, gap)
		}
		expect.OK(t, rdb.PExpire(ctx, full, gap/2).Err())
	}
}

func end(t *testing.T, rdb redis.UniversalClient) {
	ctx, v := t.Context(), visits(t, rdb, 3)
	expect.OK(t, v.End(ctx, "ada"))
	expect.OK(t, v.Record(ctx, "ada", "/1"))
	expect.OK(t, v.End(ctx, "ada"))
	wants(t, v, "ada", "")
	expect.OK(t, v.Record(ctx, "ada", "/2"))
	wants(t, v, "ada", "/2")
}

func aCounter(t *testing.T, rdb redis.UniversalClient) {
	ctx, c := t.Context(), expect.Value(navsession.NewCounter(ns[int64](t, rdb), navsession.CounterOptions{RedisTimeout: patient}))(t)
	for want := range int64(3) {
		if n := expect.Value(c.Len(ctx, "ada"))(t); n != want {
			t.Errorf("%d views, want %d", n, want)
		}
		if n := expect.Value(c.Record(ctx, "ada"))(t); n != want+1 {
			t.Errorf("Record returned %d, want %d", n, want+1)
		}
	}
	if left := rdb.PTTL(ctx, ns[int64](t, rdb).Prefix+"ada").Val(); left <= gap/2 || left > gap {
		t.Errorf("%v left, want %v", left, gap)
	}
	expect.OK(t, c.End(ctx, "ada"))
	expect.OK(t, c.End(ctx, "ada"))
	if n := expect.Value(c.Len(ctx, "ada"))(t); n != 0 {
		t.Errorf("%d views after End", n)
	}
}

// A key of another kind keeps its value and its end, and the error says what it holds.
func aKeyOfAnotherKind(t *testing.T, rdb redis.UniversalClient) {
	prefix := ns[string](t, rdb).Prefix
	v := visits(t, rdb, 3)
	c := expect.Value(navsession.NewCounter(ns[int64](t, rdb), navsession.CounterOptions{RedisTimeout: patient}))(t)
	r := expect.Value(navsession.NewRelated(ns[string](t, rdb), navsession.RelatedOptions{RedisTimeout: patient}))(t)
	for name, call := range map[string]func(ctx context.Context, user string) error{
		"Visits.Record": func(ctx context.Context, user string) error { return v.Record(ctx, user, "/") },
		"Visits.Recent": func(ctx context.Context, user string) error { _, err := v.Recent(ctx, user, 1); return err },
		"Visits.Len":    func(ctx context.Context, user string) error { _, err := v.Len(ctx, user); return err },
		"Visits.End":    v.End,
		"Counter.Record": func(ctx context.Context, user string) error {
			_, err := c.Record(ctx, user)
			return err
		},
		"Counter.Len":    func(ctx context.Context, user string) error { _, err := c.Len(ctx, user); return err },
		"Counter.End":    c.End,
		"Related.Record": func(ctx context.Context, user string) error { return r.Record(ctx, user, "other") },
		"Related.Top":    func(ctx context.Context, user string) error { _, err := r.Top(ctx, user, 1); return err },
	} {
		for _, end := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprint(name, " ", end), func(t *testing.T) {
				ctx, full := t.Context(), prefix+name+end.String()
				pipe := rdb.TxPipeline()
				pipe.HSet(ctx, full, "f", "somebody else's")
				if end > 0 {
					pipe.PExpire(ctx, full, end)
				}
				_, err := pipe.Exec(ctx)
				expect.OK(t, err)
				err = call(ctx, name+end.String())
				if err == nil || !strings.Contains(err.Error(), "holds a hash of somebody else's") || errors.Is(err, mayfly.ErrUnknownOutcome) || errors.Is(err, mayfly.ErrNotFound) {
					t.Errorf("got error %v", err)
				}
				if got := rdb.HGet(ctx, full, "f").Val(); got != "somebody else's" {
					t.Errorf("it holds %.50q now", got)
				}
				left := rdb.PTTL(ctx, full).Val()
				if end == 0 && left != -1 || end > 0 && (left > end || left < end-10*time.Minute) {
					t.Errorf("it ends in %v now, was %v", left, end)
				}
			})
		}
	}
	// A string that is no number is no counter either.
	ctx := t.Context()
	expect.OK(t, rdb.Set(ctx, prefix+"text", "ten", 0).Err())
	if _, err := c.Record(ctx, "text"); err == nil || !strings.Contains(err.Error(), "not an integer") {
		t.Errorf("counted in text: %v", err)
	}
	if left, text := rdb.PTTL(ctx, prefix+"text").Val(), rdb.Get(ctx, prefix+"text").Val(); left != -1 || text != "ten" {
		t.Errorf("a text is %q now and ends in %v", text, left)
	}
}

func aPageThatTheCodecCannotRead(t *testing.T, rdb redis.UniversalClient) {
	ctx, space := t.Context(), ns[navsession.Page](t, rdb)
	v := expect.Value(navsession.New(space, navsession.Options{Pages: 3, RedisTimeout: patient}))(t)
	expect.OK(t, rdb.RPush(ctx, space.Prefix+"ada", "http://...").Err())
	expect.OK(t, rdb.Expire(ctx, space.Prefix+"ada", gap).Err())
	if _, err := v.Recent(ctx, "ada", 3); err == nil || !strings.Contains(err.Error(), `codec "json" cannot read`) {
		t.Errorf("got error %v", err)
	}
}

func anEmptyUser(t *testing.T, rdb redis.UniversalClient) {
	ctx, v := t.Context(), visits(t, rdb, 3)
	if err := v.Record(ctx, "", "/"); err == nil || !strings.Contains(err.Error(), "the key is empty") {
		t.Errorf("got error %v", err)
	}
	if n := rdb.Exists(ctx, ns[string](t, rdb).Prefix).Val(); n != 0 {
		t.Error("the prefix alone is a key now")
	}
}

func relatedPages(t *testing.T, rdb redis.UniversalClient) {
	ctx, space := t.Context(), ns[int](t, rdb)
	r := expect.Value(navsession.NewRelated(mayfly.Namespace[int, int]{Name: "related", Redis: rdb, Prefix: space.Prefix, TTL: time.Hour}, navsession.RelatedOptions{PerVisit: 2, MinVisits: 1, RedisTimeout: patient}))(t)
	for _, visit := range [][]int{{1, 2}, {2, 1}, {1, 3}, {1, 2, 1, 2}, {4, 5, 6, 7}} {
		for i, page := range visit { // the earlier ones, the newest first
			earlier := make([]int, 0, i)
			for j := i - 1; j >= 0; j-- {
				earlier = append(earlier, visit[j])
			}
			expect.OK(t, r.Record(ctx, page, earlier...))
		}
	}
	for page, want := range map[int]string{1: "[2 3]", 2: "[1]", 3: "[1]", 7: "[6 5]", 4: "[6 5]", 9: "[]"} {
		if got := fmt.Sprint(expect.Value(r.Top(ctx, page, 10))(t)); got != want {
			t.Errorf("seen with %d: %s, want %s", page, got, want)
		}
	}
	if score := rdb.ZScore(ctx, space.Prefix+"1", "2").Val(); score != 3 {
		t.Errorf("1 and 2 were in %v visits, want 3", score)
	}
	if got := expect.Value(r.Top(ctx, 1, 1))(t); fmt.Sprint(got) != "[2]" {
		t.Errorf("the first is %v", got)
	}
	fewer := expect.Value(navsession.NewRelated(mayfly.Namespace[int, int]{Name: "related", Redis: rdb, Prefix: space.Prefix, TTL: time.Hour}, navsession.RelatedOptions{RedisTimeout: patient}))(t)
	for page, want := range map[int]string{1: "[2]", 2: "[1]", 3: "[]", 7: "[]"} { // what fewer than three visits saw may be one user's own
		if got := fmt.Sprint(expect.Value(fewer.Top(ctx, page, 10))(t)); got != want {
			t.Errorf("seen with %d in three visits: %s, want %s", page, got, want)
		}
	}
}

func relatedPagesAreBounded(t *testing.T, rdb redis.UniversalClient) {
	ctx, space := t.Context(), ns[string](t, rdb)
	r := expect.Value(navsession.NewRelated(space, navsession.RelatedOptions{Kept: 3, PerVisit: 4, MinVisits: 1, RedisTimeout: patient}))(t)
	expect.OK(t, r.Record(ctx, "a", "b", "c"))
	expect.OK(t, r.Record(ctx, "a", "b", "c"))
	expect.OK(t, r.Record(ctx, "a", "d", "e", "f", "g", "h"))
	if got := expect.Value(r.Top(ctx, "a", 10))(t); len(got) != 3 || fmt.Sprint(got[:2]) != "[c b]" {
		t.Errorf("kept %v, want three, b and c first", got)
	}
	for _, page := range []string{"a", "b", "g"} {
		if left := rdb.PTTL(ctx, space.Prefix+page).Val(); left <= gap/2 || left > gap {
			t.Errorf("the set of %q has %v left, want %v", page, left, gap)
		}
	}
	if n := rdb.Exists(ctx, space.Prefix+"h").Val(); n != 0 {
		t.Error("the fifth of a visit was counted, the bound is four")
	}
}
