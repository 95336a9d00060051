package ttlguard_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/ttlguard"
)

// guarded returns a client with a guard, and what it reports.
func guarded(t *testing.T, o ttlguard.Options) (*redis.Client, *redistest.Server, *[]ttlguard.Finding) {
	srv := redistest.Start(t)
	var found []ttlguard.Finding
	o.Prefixes = []string{"cache:", "session:"}
	o.Report = func(_ context.Context, f ttlguard.Finding) { found = append(found, f) }
	g, err := ttlguard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(srv.Options())
	t.Cleanup(func() { rdb.Close() })
	rdb.AddHook(g)
	return rdb, srv, &found
}

func TestRefuses(t *testing.T) {
	rdb, srv, found := guarded(t, ttlguard.Options{Exempt: []string{"cache:config:*"}})
	ctx := t.Context()
	err := rdb.Set(ctx, "cache:user:1", "v", 0).Err()
	if !errors.Is(err, mayfly.ErrNoTTL) || !strings.Contains(err.Error(), `set "cache:user:1"`) {
		t.Error(err)
	}
	cmds, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "free", "v", 0)
		p.Persist(ctx, "session:1")
		return nil
	})
	if !errors.Is(err, mayfly.ErrNoTTL) || !errors.Is(cmds[0].Err(), mayfly.ErrNoTTL) {
		t.Error("a pipeline:", err)
	}
	if _, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SUnionStore(ctx, "cache:all", "a", "b")
		return nil
	}); !errors.Is(err, mayfly.ErrNoTTL) {
		t.Error("a transaction:", err)
	}
	if n := rdb.DBSize(ctx).Val(); n != 0 || len(*found) != 3 || !(*found)[0].Refused {
		t.Errorf("%d keys, %v", n, *found)
	}
	*found = nil
	for what, err := range map[string]error{
		"with a TTL":      rdb.Set(ctx, "cache:user:1", "v", time.Hour).Err(),
		"another's":       rdb.Set(ctx, "queue", "v", 0).Err(),
		"exempt":          rdb.Set(ctx, "cache:config:a", "v", 0).Err(),
		"a reader":        rdb.Get(ctx, "cache:user:1").Err(),
		"bytes as key":    rdb.Do(ctx, "SET", []byte("cache:b"), "v", "EX", 5).Err(),
		"a name as value": rdb.Set(ctx, "last", "cache:user:1", 0).Err(),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.RPush(ctx, "session:1", "v")
		p.Expire(ctx, "session:1", time.Minute)
		return nil
	}); err != nil || len(*found) != 0 {
		t.Errorf("%v, %v", err, *found)
	}
	srv.FlushAll()
}

func TestDependsIsVerified(t *testing.T) {
	ctx := t.Context()
	rdb, _, found := guarded(t, ttlguard.Options{})
	rdb.Incr(ctx, "cache:n")
	if len(*found) != 1 || !(*found)[0].Depends || (*found)[0].Command != "incr" {
		t.Errorf("%v", *found)
	}
	rdb, _, found = guarded(t, ttlguard.Options{Verify: true})
	rdb.Set(ctx, "cache:n", 1, time.Minute)
	rdb.Incr(ctx, "cache:n")
	if len(*found) != 0 {
		t.Errorf("%v", *found)
	}
	rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "cache:n")
		p.Incr(ctx, "cache:m")
		return nil
	})
	if len(*found) != 1 || !strings.HasPrefix((*found)[0].String(), `incr "cache:m": leaves none, at `) {
		t.Errorf("%v", *found)
	}
	rdb, _, _ = guarded(t, ttlguard.Options{OnDepends: ttlguard.ActionRefuse, OnNone: ttlguard.ActionReport})
	if err := rdb.Incr(ctx, "cache:n").Err(); !errors.Is(err, mayfly.ErrNoTTL) {
		t.Error(err)
	}
	if err := rdb.Set(ctx, "cache:n", 1, 0).Err(); err != nil {
		t.Error(err)
	}
}

// A program goes over from Report to Refuse prefix by prefix.
func TestEnforced(t *testing.T) {
	rdb, _, found := guarded(t, ttlguard.Options{OnNone: ttlguard.ActionReport, OnDepends: ttlguard.ActionIgnore, Enforced: []string{"cache:user:", "session:"}})
	ctx := t.Context()
	for key, refused := range map[string]bool{"cache:user:1": true, "session:1": true, "cache:page:1": false} {
		*found = nil
		if err := rdb.Set(ctx, key, "v", 0).Err(); errors.Is(err, mayfly.ErrNoTTL) != refused || len(*found) != 1 || (*found)[0].Refused != refused {
			t.Errorf("%s: %v, %v", key, err, *found)
		}
		if err := rdb.Incr(ctx, key+":n").Err(); err != nil {
			t.Errorf("%s: what depends is ignored: %v", key, err)
		}
	}
}

// A finding says where the program sent it, however it did.
func TestCaller(t *testing.T) {
	rdb, _, found := guarded(t, ttlguard.Options{})
	ctx := t.Context()
	here := func(i int) string { // i lines above
		_, file, line, _ := runtime.Caller(1)
		return fmt.Sprintf("%s:%d", file, line-i)
	}
	check := func(what, want string) {
		t.Helper()
		if len(*found) != 1 || (*found)[0].Caller != want {
			t.Errorf("%s: %v, want %s", what, *found, want)
		}
		*found = nil
	}
	rdb.Set(ctx, "cache:1", "v", 0)
	check("a command", here(1))
	pipe := rdb.Pipeline()
	pipe.Set(ctx, "cache:1", "v", 0)
	pipe.Exec(ctx)
	check("a pipeline", here(1))
	rdb.Incr(ctx, "cache:n")
	check("what depends", here(1))
	cluster := redis.NewClusterClient(redistest.StartCluster(t, 2).Options())
	defer cluster.Close()
	cluster.AddHook(expect.Value(ttlguard.New(ttlguard.Options{Prefixes: []string{"cache:"}, Report: func(_ context.Context, f ttlguard.Finding) { *found = append(*found, f) }}))(t))
	cluster.Set(ctx, "cache:1", "v", 0)
	check("on a cluster", here(1))
}

// The clone that WithTimeout returns has none of the client's hooks, and accepts its own.
func TestWithTimeout(t *testing.T) {
	rdb, _, found := guarded(t, ttlguard.Options{})
	hurried := rdb.WithTimeout(time.Second)
	if err := hurried.Set(t.Context(), "cache:1", "v", 0).Err(); err != nil {
		t.Fatalf("the clone has the guard now, so the documents are out of date: %v", err)
	}
	var seen int
	hurried.AddHook(expect.Value(ttlguard.New(ttlguard.Options{Prefixes: []string{"cache:"}, Report: func(context.Context, ttlguard.Finding) { seen++ }}))(t))
	if err := hurried.Set(t.Context(), "cache:1", "v", 0).Err(); !errors.Is(err, mayfly.ErrNoTTL) || seen != 1 || len(*found) != 0 {
		t.Errorf("%v, %d findings, %v", err, seen, *found)
	}
	if err := rdb.Set(t.Context(), "cache:1", "v", 0).Err(); !errors.Is(err, mayfly.ErrNoTTL) || seen != 1 {
		t.Errorf("the client itself: %v, %d findings", err, seen)
	}
}

func TestBadOptions(t *testing.T) {
	for says, o := range map[string]ttlguard.Options{
		"Prefixes is empty":                           {},
		"Prefixes[1] is empty":                        {Prefixes: []string{"a:", ""}},
		"Exempt[0] \"[\"":                             {Prefixes: []string{"a:"}, Exempt: []string{"["}},
		"OnNone must be":                              {Prefixes: []string{"a:"}, OnNone: 9},
		"OnNone is ActionReport":                      {Prefixes: []string{"a:"}, OnNone: ttlguard.ActionReport},
		"OnDepends is ActionReport":                   {Prefixes: []string{"a:"}, OnDepends: ttlguard.ActionReport},
		"Verify is set":                               {Prefixes: []string{"a:"}, Verify: true},
		"OnDepends must be zero":                      {Prefixes: []string{"a:"}, OnDepends: -1},
		"Enforced[0] \"b:\" begins with none":         {Prefixes: []string{"a:"}, OnNone: ttlguard.ActionIgnore, Enforced: []string{"b:"}},
		"Enforced[1] \"\" begins with none":           {Prefixes: []string{"a:"}, OnNone: ttlguard.ActionIgnore, Enforced: []string{"a:b:", ""}},
		"Enforced is set, but OnNone already refuses": {Prefixes: []string{"a:"}, Enforced: []string{"a:"}},
	} {
		if _, err := ttlguard.New(o); err == nil || !strings.Contains(err.Error(), "Options."+says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// Commands that are not watched cost no allocation.
func TestOthersCostNothing(t *testing.T) {
	g, err := ttlguard.New(ttlguard.Options{Prefixes: []string{"cache:", "session:"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	process := g.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	pipeline := g.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return nil })
	get, set := redis.NewStringCmd(ctx, "get", "cache:a"), redis.NewStatusCmd(ctx, "set", "queue", "v")
	both := []redis.Cmder{get, set}
	if n := testing.AllocsPerRun(100, func() {
		process(ctx, get)
		process(ctx, set)
		pipeline(ctx, both)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOther(b *testing.B) {
	g, _ := ttlguard.New(ttlguard.Options{Prefixes: []string{"cache:", "session:"}})
	process := g.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	get := redis.NewStringCmd(b.Context(), "get", "user:1")
	for b.Loop() {
		process(b.Context(), get)
	}
}

// A hook without a next one is noticed when it is mounted, not at the first command.
func TestHooksNil(t *testing.T) {
	g := expect.Value(ttlguard.New(ttlguard.Options{Prefixes: []string{"cache:"}, Report: func(context.Context, ttlguard.Finding) {}}))(t)
	expect.Panic(t, "ttlguard: DialHook got a nil hook", func() { g.DialHook(nil) })
	expect.Panic(t, "ttlguard: ProcessHook got a nil hook", func() { g.ProcessHook(nil) })
	expect.Panic(t, "ttlguard: ProcessPipelineHook got a nil hook", func() { g.ProcessPipelineHook(nil) })
}

func TestActionsAreWords(t *testing.T) {
	for a, want := range map[ttlguard.Action]string{0: "default", ttlguard.ActionIgnore: "ignore", ttlguard.ActionReport: "report", ttlguard.ActionRefuse: "refuse", 7: "Action(7)"} {
		if a.String() != want {
			t.Errorf("%d is %q, want %q", int(a), a, want)
		}
	}
}
