package httpcache_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
)

// crowd sends n requests at once, with the header that each call of say returns, and returns the answers.
func crowd(t *testing.T, n int, h http.Handler, url string, header func(i int) []string) (bodies []string) {
	bodies = make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var lines []string
			if header != nil {
				lines = header(i)
			}
			bodies[i], _ = get(t, h, url, lines...)
		})
	}
	wg.Wait()
	return bodies
}

func TestMissesAreOne(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(3 * time.Second)
			set(w.Header(), []string{"Cache-Control: max-age=60", "Vary: X-Color"})
			io.WriteString(w, r.Header.Get("X-Color"))
		}}
		// Two caches stand for two processes.
		hs := []http.Handler{opened(t, options(t, rdb)).Handler(o), opened(t, options(t, rdb)).Handler(o)}
		color := func(i int) []string { return []string{"X-Color: " + []string{"red", "blue"}[i%2]} }
		var wg sync.WaitGroup
		for _, h := range hs {
			wg.Go(func() {
				for i, body := range crowd(t, 100, h, "http://a.example/", color) {
					if "X-Color: "+body != color(i)[0] {
						t.Errorf("%d got %q", i, body)
					}
				}
			})
		}
		wg.Wait()
		if n := o.called(); n != 2 {
			t.Errorf("the handler was called %d times for two variants", n)
		}
	})
}

func TestAnAnswerForOneClientIsNotWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "user", Value: r.Header.Get("X-User")})
			w.Header().Set("Cache-Control", "max-age=60")
			w.WriteHeader(http.StatusOK)
			time.Sleep(2 * time.Second) // the body is slow, but the header is known
			io.WriteString(w, r.Header.Get("X-User"))
		}}
		cache := opened(t, options(t, rdb))
		h := cache.Handler(o)
		user := func(i int) []string { return []string{fmt.Sprint("X-User: ", i)} }
		begun := time.Now()
		for i, body := range crowd(t, 100, h, "http://a.example/", user) {
			if body != fmt.Sprint(i) {
				t.Errorf("%d got the answer of %q", i, body)
			}
		}
		if took := time.Since(begun); took > 2500*time.Millisecond {
			t.Errorf("they waited for each other: %v", took)
		}
		synctest.Wait()
		calls := o.called()
		crowd(t, 100, h, "http://a.example/", user)
		if calls != 100 || o.called() != 200 {
			t.Errorf("the handler was called %d times, then %d", calls, o.called())
		}
		if s := cache.Stats(); s.Collapsed != 0 || s.Stored != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// If Redis cannot be told that an answer is for one client alone, this process knows it nevertheless. Other processes wait until the lease
// ends, which nobody prolongs, and not until the body ends.
func TestAnAnswerForOneClientIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, asked := redistest.Start(t), make(chan time.Time, 1)
		h := func() http.Handler {
			return opened(t, options(t, srv.Client())).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- time.Now()
				time.Sleep(400 * time.Millisecond)
				w.Header().Set("Cache-Control", "private")
				w.WriteHeader(http.StatusOK)
				time.Sleep(7 * time.Second)
			}))
		}
		one, other := h(), h()
		var all sync.WaitGroup
		defer all.Wait()
		all.Go(func() { get(t, one, "http://a.example/") })
		<-asked
		time.Sleep(390 * time.Millisecond)
		for range 2 { // the note that it is for one client, and then the return of the lease
			srv.FailNext("evalsha", "ERR lost")
		}
		time.Sleep(50 * time.Millisecond)
		for _, c := range []struct {
			who  string
			h    http.Handler
			most time.Duration
		}{{"this process", one, 10 * time.Millisecond}, {"another", other, 1500 * time.Millisecond}} {
			begun := time.Now()
			all.Go(func() { get(t, c.h, "http://a.example/") })
			if took := (<-asked).Sub(begun); took > c.most {
				t.Errorf("%s asks its handler after %v", c.who, took)
			}
		}
	})
}

// When answers that were for one client alone become shareable, they are stored at once: nothing waits until the note in memory expires.
func TestAPassEndsWithAnAnswerForAll(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		say := "private"
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", say)
			w.WriteHeader(http.StatusOK)
		}}
		h := opened(t, options(t, rdb)).Handler(o)
		get(t, h, "http://a.example/")
		synctest.Wait()
		if _, status := get(t, h, "http://a.example/"); !strings.HasSuffix(status, "detail=private") {
			t.Errorf("while it is private: %s", status)
		}
		say = "max-age=60"
		if _, status := get(t, h, "http://a.example/"); !strings.Contains(status, "stored") {
			t.Errorf("the first that is not: %s", status)
		}
		if _, status := get(t, h, "http://a.example/"); !isHit(status) {
			t.Errorf("the next: %s", status)
		}
	})
}

// Variants stored at the same time are all listed: a writer that finds the index changed tries again, and not in step with the others.
func TestVariantsAtOnceAreAllStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		h := opened(t, options(t, srv.Client())).Handler(says("body", "Cache-Control: "+fresh, "Vary: X-Color"))
		color := func(i int) []string { return []string{fmt.Sprint("X-Color: ", i)} }
		get(t, h, "http://a.example/", color(0)...)
		srv.Latency(time.Millisecond)
		crowd(t, 30, h, "http://a.example/", color)
		time.Sleep(10 * time.Second)
		for i := range 30 {
			if _, status := get(t, h, "http://a.example/", color(i)...); !isHit(status) {
				t.Errorf("variant %d: %s", i, status)
			}
		}
	})
}

func TestVariantsAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := says("body", "Cache-Control: max-age=60", "Vary: X-Color")
		opt := options(t, rdb)
		opt.MaxVariants = 4
		h := opened(t, opt).Handler(o)
		color := func(i int) string { return fmt.Sprint("X-Color: ", i) }
		for i := range 200 {
			get(t, h, "http://a.example/", color(i))
		}
		if n := rdb.DBSize(t.Context()).Val(); n > 6 { // and the index, and the version of the purges
			t.Errorf("%d keys", n)
		}
		for i := 196; i < 200; i++ {
			if _, status := get(t, h, "http://a.example/", color(i)); !isHit(status) {
				t.Errorf("the latest are not there: %s", status)
			}
		}
	})
}

// Stored answers survive the flood. One answer still serves all requests that came before the handler was called, and later requests share
// the next one. When the flood is over, new variants are stored again.
func TestAFloodEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := &origin{}
		o.serve = func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Millisecond)
			inColor(fresh)(w, r)
		}
		opt := options(t, rdb)
		opt.MaxVariants, opt.SharedPass = 4, 5*time.Second
		h := opened(t, opt).Handler(o)
		for i := range 261 {
			get(t, h, "http://a.example/", fmt.Sprint("X-Color: ", i))
		}
		status := func(color string) string {
			_, status := get(t, h, "http://a.example/", "X-Color: "+color)
			return status
		}
		for range 2 {
			if got := status("new"); isHit(got) || strings.Contains(got, "; stored") {
				t.Errorf("a new variant within the flood: %s", got)
			}
		}
		if got := status("260"); !isHit(got) {
			t.Errorf("one that was stored: %s", got)
		}
		calls := o.called()
		for _, body := range crowd(t, 100, h, "http://a.example/", func(int) []string { return []string{"X-Color: red"} }) {
			if body != "the page in red" {
				t.Errorf("one of many got %q", body)
			}
		}
		if n := o.called() - calls; n > 2 {
			t.Errorf("the handler was called %d times for a variant that many wait for", n)
		}
		time.Sleep(5 * time.Second)
		if got := status("new"); !strings.Contains(got, "; stored") {
			t.Errorf("a new variant after the flood: %s", got)
		}
	})
}

// Requests do not wait forever for a handler that does not finish its answer.
func TestWaitingEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := &origin{}
		o.serve = func(w http.ResponseWriter, r *http.Request) {
			if o.called() == 1 {
				time.Sleep(time.Hour)
			}
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, "body")
		}
		other := opened(t, options(t, rdb)).Handler(o)
		h := opened(t, options(t, rdb)).Handler(o)
		done := make(chan bool)
		go func() { get(t, h, "http://a.example/"); close(done) }()
		synctest.Wait()
		for _, h := range []http.Handler{h, other} {
			begun := time.Now()
			if body, _ := get(t, h, "http://a.example/"); body != "body" || time.Since(begun) > 11*time.Second {
				t.Errorf("%q after %v", body, time.Since(begun))
			}
		}
		<-done
	})
}

func TestRedisIsNoCondition(t *testing.T) {
	for _, fault := range []string{"refused", "hung", "errors"} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, opt, events := impatient(t)
				o := says("body", "Cache-Control: max-age=60", "Cache-Tag: a")
				h := opened(t, opt).Handler(o)
				get(t, h, "http://a.example/stored")
				switch fault {
				case "refused":
					srv.Refuse(true)
					srv.KillConnections()
				case "hung":
					srv.Hang()
				case "errors":
					srv.FailNext("set", "OOM command not allowed when used memory > 'maxmemory'.")
				}
				for i := range 50 {
					begun := time.Now()
					res := ask(h, "GET", fmt.Sprint("http://a.example/", i))
					if b, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(b) != "body" {
						t.Fatalf("%d: %d, %q", i, res.StatusCode, b)
					}
					if took := time.Since(begun); took > 110*time.Millisecond || i > 10 && took > 20*time.Millisecond && i%10 != 0 {
						t.Errorf("request %d took %v", i, took)
					}
				}
				if events.Count(mayfly.KindBackend, mayfly.OutcomeFailed)+events.Count(mayfly.KindBackend, mayfly.OutcomeTimedOut) == 0 {
					t.Error("no event says so")
				}
				srv.Refuse(false)
				srv.Thaw()
				time.Sleep(2 * time.Second)
				get(t, h, "http://a.example/after")
				time.Sleep(2 * time.Second)
				get(t, h, "http://a.example/after")
				if _, status := get(t, h, "http://a.example/after"); !isHit(status) {
					t.Errorf("afterwards: %s", status)
				}
			})
		})
	}
}

// A request spends at most RedisTimeout on a slow Redis, in addition to the handler's time.
func TestASlowRedisCostsItsTimeoutOnce(t *testing.T) {
	for _, latency := range []time.Duration{30, 45, 60, 90} {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			opt := options(t, srv.Client())
			opt.RedisTimeout = 100 * time.Millisecond
			h := opened(t, opt).Handler(says("body", "Cache-Control: max-age=60", "Vary: X-Color", "Cache-Tag: a"))
			get(t, h, "http://a.example/", "X-Color: red")
			srv.Latency(latency * time.Millisecond)
			for i := range 20 {
				begun := time.Now()
				get(t, h, "http://a.example/", fmt.Sprint("X-Color: ", i%3))
				if took := time.Since(begun); took > 110*time.Millisecond {
					t.Errorf("latency %d ms: request %d took %v", latency, i, took)
				}
				time.Sleep(time.Second)
			}
			srv.Latency(0)
			time.Sleep(5 * time.Second)
		})
	}
}

// Without Redis, the misses of one process still call the handler once.
func TestMissesAreOneWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		srv.Refuse(true)
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(5 * time.Second)
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, "body")
		}}
		h := must(t)(options(t, srv.Client()).New()).Handler(o)
		for _, body := range crowd(t, 100, h, "http://a.example/", nil) {
			if body != "body" {
				t.Fatalf("%q", body)
			}
		}
		if n := o.called(); n != 1 {
			t.Errorf("the handler was called %d times", n)
		}
		srv.Refuse(false)
		time.Sleep(5 * time.Second) // the client dials in the background until it may
	})
}

// A cache that is closed while its handler runs gives its lease back when the handler returns, whatever the answer, so that others need not
// wait until the lease ends.
func TestAClosedCacheHandsItsLeasesBack(t *testing.T) {
	for name, status := range map[string]int{"a good answer": 200, "a failure": 500} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, rdb *redis.Client) {
				slow := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(3 * time.Second)
					w.Header().Set("Cache-Control", "max-age=60")
					w.WriteHeader(status)
				}}
				var asked time.Time
				quick := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
					asked = time.Now()
					w.Header().Set("Cache-Control", "max-age=60")
				}}
				one, other := opened(t, options(t, rdb)), opened(t, options(t, rdb))
				var all sync.WaitGroup
				all.Go(func() { ask(one.Handler(slow), "GET", "http://a.example/") })
				time.Sleep(2900 * time.Millisecond)
				all.Go(func() { ask(other.Handler(quick), "GET", "http://a.example/") })
				time.Sleep(50 * time.Millisecond)
				if err := one.Close(t.Context()); err != nil {
					t.Error(err)
				}
				ended := time.Now().Add(50 * time.Millisecond)
				all.Wait()
				if took := asked.Sub(ended); took > 200*time.Millisecond {
					t.Errorf("the other asked its handler %v later", took)
				}
			})
		})
	}
}
