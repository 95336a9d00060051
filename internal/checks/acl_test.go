package checks

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/navsession"
	"github.com/mayflycache/mayfly/sliding"
	"github.com/mayflycache/mayfly/ttlaudit"
)

// The rules of docs/operations.md are exactly what each package needs: for a user with these rules everything works and Redis's ACL LOG stays
// empty, and without any one of the commands it does not.
func TestACLRules(t *testing.T) {
	users := aclUsers(t)
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := users[name]
			if rules == nil {
				t.Fatalf("docs/operations.md has no ACL SETUSER %s", name)
			}
			srv := realredis.Start(t, realredis.Options{})
			if denied, err := useAs(t, srv, rules, use, heartbeat); err != nil || len(denied) > 0 {
				t.Fatalf("denied %v, %v", denied, err)
			}
			for i, rule := range rules {
				if !strings.HasPrefix(rule, "+") || name == "plain" && slices.Contains(users["aside"], rule) { // the user aside shows it
					continue
				}
				load := time.Duration(0)
				if rule == "+pexpire" {
					load = heartbeat
				}
				if denied, _ := useAs(t, srv, slices.Delete(slices.Clone(rules), i, i+1), use, load); len(denied) == 0 {
					t.Errorf("%s is not needed", rule)
				}
			}
		})
	}
	for name := range users {
		if uses[name] == nil {
			t.Errorf("nothing uses the rules of %s", name)
		}
	}
}

// heartbeat is longer than a lease lives without renewal.
const heartbeat = 400 * time.Millisecond

// aclUsers are the users in docs/operations.md, with their rules.
func aclUsers(t *testing.T) map[string][]string {
	users := map[string][]string{}
	for _, line := range read(t, filepath.Join(root, "docs/operations.md")).lines {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "ACL SETUSER "); ok {
			words := strings.Fields(rest)
			users[words[0]] = words[1:]
		}
	}
	return users
}

// use does everything that a package can do.
type use func(ctx context.Context, rdb redis.UniversalClient, during scene) error

// scene is the surroundings of a use.
type scene struct {
	load  time.Duration        // what a load takes
	until func(command string) // waits until the command was sent, or something was denied
}

// useAs returns what Redis denied to a user with these rules.
func useAs(t *testing.T, srv *realredis.Server, rules []string, use use, load time.Duration) (denied []string, err error) {
	ctx, admin := t.Context(), srv.Client()
	defer admin.Close()
	args := []any{"acl", "setuser", "somebody", "reset"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	for _, err := range []error{
		admin.Do(ctx, args...).Err(),
		admin.ScriptFlush(ctx).Err(),
		admin.FlushAll(ctx).Err(),
		admin.Set(ctx, "forever", "v", 0).Err(),
		admin.HSet(ctx, "hash", "f", "v").Err(),
		foreign(ctx, admin),
		admin.ACLLogReset(ctx).Err(),
		admin.ConfigResetStat(ctx).Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	o := srv.Options()
	o.Username, o.Password = "somebody", "secret"
	o.ContextTimeoutEnabled = true
	rdb := redis.NewClient(o)
	defer rdb.Close()
	log := func() (denied []string) {
		for _, e := range admin.ACLLog(ctx, 100).Val() {
			denied = append(denied, e.Reason+" "+e.Object)
		}
		return denied
	}
	err = use(ctx, rdb, scene{load, func(command string) {
		end := time.After(20 * time.Second)
		for tick := time.Tick(10 * time.Millisecond); len(log()) == 0; {
			if strings.Contains(admin.Info(ctx, "commandstats").Val(), "cmdstat_"+command+":") {
				return
			}
			select {
			case <-tick:
			case <-end:
				t.Errorf("nobody asked for %s", command)
				return
			}
		}
	}})
	return log(), err
}

var uses = map[string]use{
	"aside": func(ctx context.Context, rdb redis.UniversalClient, during scene) error {
		return useCacheaside(ctx, during, mayfly.Namespace[int64, User]{Name: "users", Redis: rdb, Prefix: "cache:user:", TTL: time.Hour})
	},
	"plain": func(ctx context.Context, rdb redis.UniversalClient, during scene) error {
		return useCacheaside(ctx, during, mayfly.Namespace[int64, User]{Name: "users", Redis: rdb, Prefix: "cache:user:", TTL: time.Hour, Plain: true})
	},
	"near": func(ctx context.Context, rdb redis.UniversalClient, during scene) error {
		local, err := mayfly.OpenLocal(ctx, mayfly.LocalOptions{Redis: rdb, Prefixes: []string{"cache:"}, MaxEntries: 10, Silence: 500 * time.Millisecond})
		if err != nil {
			return err
		}
		defer local.Close(ctx)
		during.until("set") // the probe that follows after a while of silence
		return nil
	},
	"sessions": useSliding,
	"limits": func(ctx context.Context, rdb redis.UniversalClient, _ scene) error {
		for i, weighed := range []bool{false, true} {
			l, err := sliding.NewLimiter(mayfly.Namespace[int, int64]{Name: "limits", Redis: rdb, Prefix: "limit:", TTL: time.Minute},
				sliding.LimiterOptions{Limit: 2, Sliding: weighed})
			if err != nil {
				return err
			}
			for range 3 {
				if _, err := l.Allow(ctx, i, 1); err != nil {
					return err
				}
			}
		}
		return nil
	},
	"visits": useNavsession,
	"fields": useFieldttl,
	"pages":  usePages,
	"audit": func(ctx context.Context, rdb redis.UniversalClient, _ scene) error {
		r, err := ttlaudit.Run(ctx, rdb, ttlaudit.Options{})
		if err == nil && !r.Complete {
			return fmt.Errorf("%+v", r)
		}
		return err
	},
}

// foreign stores data of other programs under keys of the packages: hashes, but a string where a hash is expected; one has a TTL, one has
// none.
func foreign(ctx context.Context, admin redis.UniversalClient) error {
	_, err := admin.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, prefix := range []string{"session:0:", "pageviews.user:", "views:", "related:", "login:"} {
			for _, name := range []string{"foreign", "endless"} {
				if prefix == "login:" {
					p.Set(ctx, prefix+name, "v", 0)
				} else {
					p.HSet(ctx, prefix+name, "f", "v")
				}
			}
			p.Expire(ctx, prefix+"foreign", time.Hour)
		}
		return nil
	})
	return err
}

// leftAlone is a step that finds another program's data, and must get the error for that.
func leftAlone(call func() error) func() error {
	return func() error {
		if err := call(); err == nil || !strings.Contains(err.Error(), "somebody else's, and was left alone") || strings.Contains(err.Error(), "could not be restored") {
			return fmt.Errorf("a key of somebody else's: %w", err)
		}
		return nil
	}
}

// User is the cached type.
type User struct{ Name string }

func useCacheaside(ctx context.Context, during scene, ns mayfly.Namespace[int64, User]) error {
	load := func(ctx context.Context, id int64) (User, error) {
		if id == 9 {
			<-time.After(during.load)
		}
		return User{"Ada"}, nil
	}
	o := cacheaside.Options{Early: earlyrefresh.Window(0.999999), RedisTimeout: 10 * time.Second}
	if !ns.Plain {
		o.Hold = time.Millisecond
	}
	c, err := cacheaside.New(ns, load, o)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	steps := []func() error{
		func() error { _, err := c.Get(ctx, 9); return err },
		func() error { _, err := c.Get(ctx, 1); return err },
		func() error { _, err := c.Get(ctx, 1); return err }, // renewed
		func() error { _, err := c.GetMany(ctx, []int64{1, 2, 3}); return err },
		func() error { return c.Set(ctx, 4, User{"Bob"}) },
		func() error { return c.SetMany(ctx, map[int64]User{5: {"Cid"}, 6: {"Dan"}}) },
		func() error { _, _, err := c.Lookup(ctx, 4); return err },
		func() error { return c.Delete(ctx, 4, 5) },
		func() error { return c.Clear(ctx) },
	}
	return all(steps)
}

func all(steps []func() error) (first error) {
	for i, step := range steps {
		if err := step(); err != nil && first == nil {
			first = fmt.Errorf("step %d: %w", i, err)
		}
	}
	return first
}

func useSliding(ctx context.Context, rdb redis.UniversalClient, _ scene) error {
	for i, o := range []sliding.Options{{}, {Atomic: true}, {TouchBelow: 0.5}, {MaxAge: time.Hour}} {
		s, err := sliding.New(mayfly.Namespace[string, User]{Name: "sessions", Redis: rdb, Prefix: fmt.Sprintf("session:%d:", i), TTL: time.Minute}, o)
		if err != nil {
			return err
		}
		err = all([]func() error{
			func() error { return s.Create(ctx, "a", User{"Ada"}) },
			func() error { _, err := s.Get(ctx, "a"); return err },
			func() error { _, err := s.Peek(ctx, "a"); return err },
			func() error { _, err := s.TTL(ctx, "a"); return err },
			func() error { <-time.After(5 * time.Millisecond); return nil }, // after which there is something to renew
			func() error { return s.Touch(ctx, "a") },
			func() error { _, err := s.TouchMany(ctx, "a", "b"); return err },
			func() error { return s.Set(ctx, "a", User{"Bob"}) },
			func() error {
				_, err := s.Update(ctx, "a", func(u User) (User, error) { return User{"Cid"}, nil })
				return err
			},
			func() error { return s.Rotate(ctx, "a", "b") },
			func() error {
				for _, err := range s.All(ctx) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			func() error { return s.Delete(ctx, "b") },
			func() error {
				if i > 0 {
					return nil
				}
				return leftAlone(func() error { _, err := s.Peek(ctx, "foreign"); return err })()
			},
		})
		if err != nil {
			return fmt.Errorf("%+v: %w", o, err)
		}
	}
	return nil
}

func useNavsession(ctx context.Context, rdb redis.UniversalClient, _ scene) error {
	visits, err := navsession.New(mayfly.Namespace[string, string]{Name: "visits", Redis: rdb, Prefix: "pageviews.user:", TTL: time.Minute}, navsession.Options{Pages: 2})
	if err != nil {
		return err
	}
	counter, err := navsession.NewCounter(mayfly.Namespace[string, int64]{Name: "views", Redis: rdb, Prefix: "views:", TTL: time.Minute}, navsession.CounterOptions{})
	if err != nil {
		return err
	}
	related, err := navsession.NewRelated(mayfly.Namespace[string, string]{Name: "related", Redis: rdb, Prefix: "related:", TTL: time.Minute}, navsession.RelatedOptions{Kept: 1})
	if err != nil {
		return err
	}
	return all([]func() error{
		func() error { return visits.Record(ctx, "ada", "/1") },
		func() error { return visits.Record(ctx, "ada", "/2") },
		func() error { _, err := visits.Recent(ctx, "ada", 2); return err },
		func() error { _, err := visits.Len(ctx, "ada"); return err },
		func() error { return visits.End(ctx, "ada") },
		func() error { _, err := counter.Record(ctx, "ada"); return err },
		func() error { _, err := counter.Len(ctx, "ada"); return err },
		func() error { return counter.End(ctx, "ada") },
		func() error { return related.Record(ctx, "/2", "/1", "/0") },
		func() error { _, err := related.Top(ctx, "/1", 2); return err },
		leftAlone(func() error { return visits.Record(ctx, "foreign", "/1") }),
		leftAlone(func() error { return visits.Record(ctx, "endless", "/1") }),
		leftAlone(func() error { _, err := counter.Record(ctx, "foreign"); return err }),
		leftAlone(func() error { return related.Record(ctx, "foreign", "/1") }),
	})
}

func useFieldttl(ctx context.Context, rdb redis.UniversalClient, _ scene) error {
	type login struct {
		User string `redis:"user"`
		CSRF string `redis:"csrf,ttl=15m"`
	}
	s, err := fieldttl.New(mayfly.Namespace[string, login]{Name: "logins", Redis: rdb, Prefix: "login:", TTL: time.Hour}, fieldttl.Options{})
	if err != nil {
		return err
	}
	return all([]func() error{
		func() error { return s.Set(ctx, "a", login{"ada", "x"}) },
		func() error { _, err := s.Get(ctx, "a"); return err },
		func() error { _, err := s.GetAndTouchFields(ctx, "a", "csrf"); return err },
		func() error { return s.TouchFields(ctx, "a", "csrf") },
		func() error { return s.PersistFields(ctx, "a", "csrf") },
		func() error { return s.SetFields(ctx, "a", login{CSRF: "y"}, "csrf") },
		func() error {
			_, err := s.Update(ctx, "a", func(e fieldttl.Entry[login]) (login, error) { return login{CSRF: "z"}, nil }, "csrf")
			return err
		},
		func() error { return s.Touch(ctx, "a") },
		func() error { _, _, err := s.TTLs(ctx, "a"); return err },
		func() error { return s.DeleteFields(ctx, "a", "csrf") },
		func() error { return s.Delete(ctx, "a") },
		leftAlone(func() error { return s.Set(ctx, "foreign", login{"ada", "x"}) }),
		leftAlone(func() error { return s.Touch(ctx, "endless") }),
	})
}

func usePages(ctx context.Context, rdb redis.UniversalClient, during scene) error {
	ns := mayfly.Namespace[string, []byte]{Name: "pages", Redis: rdb, Prefix: "http:", TTL: time.Hour}
	cache, err := httpcache.New(ns, httpcache.Options{RedisTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer cache.Close(ctx)
	another, err := httpcache.New(ns, httpcache.Options{RedisTimeout: 10 * time.Second}) // as in another process
	if err != nil {
		return err
	}
	defer another.Close(ctx)
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-time.After(during.load)
		case "/both":
			<-time.After(50 * time.Millisecond)
		}
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "Accept-Language")
		w.Header().Set("Cache-Tag", "t")
		if r.URL.Path == "/stale" {
			w.Header().Set("Cache-Control", "max-age=0, stale-while-revalidate=60")
		}
		fmt.Fprint(w, "page")
	})
	site, theirs := cache.Handler(origin), another.Handler(origin)
	ask := func(site http.Handler, method, path string) {
		site.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, method, "http://example.com"+path, nil))
	}
	get := func(method, path string) func() error {
		return func() error {
			ask(site, method, path)
			return nil
		}
	}
	return all([]func() error{
		func() error { // one of them waits for the other
			var both sync.WaitGroup
			both.Go(func() { ask(site, "GET", "/both") })
			both.Go(func() { ask(theirs, "GET", "/both") })
			both.Wait()
			return nil
		},
		get("GET", "/slow"), get("GET", "/a"), get("GET", "/a"), get("GET", "/stale"), get("GET", "/stale"), get("POST", "/a"), get("GET", "/b"),
		func() error { return cache.Purge(ctx, httpcache.Target{URL: "http://example.com/b"}) },
		func() error { return cache.Purge(ctx, httpcache.Target{Tag: "t"}) },
		func() error { return cache.Purge(ctx, httpcache.Target{Prefix: "http://example.com/"}) },
	})
}
