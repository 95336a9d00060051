package cacheaside_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// This order of events would serve an older value after Delete:
//
//  1. a Get begins a load, which reads version 1
//  2. the database changes to version 2, Delete returns
//  3. a second Get begins; if it joined the first load, it would see version 1
func aGetAfterDeleteNeverSeesAnOlderLoad(t *testing.T, rdb redis.UniversalClient) {
	key := 0
	for name, change := range map[string]func(c *cacheaside.Cache[int, user]) error{
		"Delete": func(c *cacheaside.Cache[int, user]) error { return c.Delete(t.Context(), key) },
		"Clear":  func(c *cacheaside.Cache[int, user]) error { return c.Clear(t.Context()) },
		"Set":    func(c *cacheaside.Cache[int, user]) error { return c.Set(t.Context(), key, user{"set", 2}) },
	} {
		key++
		var version atomic.Int32
		version.Store(1)
		var events expect.Events
		ns := namespace(t, rdb)
		ns.Observer = &events
		loading, goOn := make(chan struct{}, 9), make(chan struct{})
		c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
			read := int(version.Load())
			loading <- struct{}{}
			if read == 1 {
				<-goOn
			}
			return user{"u", read}, nil
		}, cacheaside.Options{RedisTimeout: patient}))
		first := make(chan user)
		go func() {
			u, _ := c.Get(t.Context(), key)
			first <- u
		}()
		<-loading
		version.Store(2)
		if err := change(c); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if u, err := c.Get(t.Context(), key); u.Version != 2 || err != nil {
				t.Errorf("%s: a Get that began later: %+v, %v", name, u, err)
			}
		}
		close(goOn)
		if u := <-first; u.Version != 1 {
			t.Errorf("%s: the first Get: %+v", name, u)
		}
		if u, _ := c.Get(t.Context(), key); u.Version != 2 {
			t.Errorf("%s: stored is %+v", name, u)
		}
		if n := events.Count(mayfly.KindFill, mayfly.OutcomeRefused); n != 1 {
			t.Errorf("%s: %d fills refused", name, n)
		}
	}
}

func deleteKillsTheStaleCopyToo(t *testing.T, rdb redis.UniversalClient) {
	down := false
	c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
		if down {
			return user{}, errors.New("down")
		}
		return user{Version: 1}, nil
	}, cacheaside.Options{StaleWhile: time.Hour, StaleIfError: time.Hour, RedisTimeout: patient}))
	c.Get(t.Context(), 7)
	down = true
	c.Delete(t.Context(), 7)
	if u, err := c.Get(t.Context(), 7); err == nil {
		t.Errorf("got %+v", u)
	}
}

// A renewal that runs while its key is deleted must not bring the old value back either, whatever it loaded.
func TestDeleteWhileTheValueIsRenewed(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var version atomic.Int32
		version.Store(1)
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			read := int(version.Load())
			time.Sleep(time.Second)
			return user{Version: read}, nil
		}, cacheaside.Options{StaleWhile: time.Hour}))
		c.Get(t.Context(), 7)
		time.Sleep(61 * time.Second)
		c.Get(t.Context(), 7) // stale: its renewal reads version 1
		time.Sleep(500 * time.Millisecond)
		version.Store(2)
		c.Delete(t.Context(), 7)
		synctest.Wait()
		if u, err := c.Get(t.Context(), 7); u.Version != 2 || err != nil {
			t.Errorf("after Delete: %+v, %v", u, err)
		}
		time.Sleep(2 * time.Second)
		if u, err := c.Get(t.Context(), 7); u.Version != 2 || err != nil {
			t.Errorf("the renewal brought back %+v, %v", u, err)
		}
	})
}

func holdRefusesFills(t *testing.T, rdb redis.UniversalClient) {
	version := 1 // as the lagging replica has it
	c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
		return user{"u", version}, nil
	}, cacheaside.Options{Hold: time.Minute, RedisTimeout: patient}))
	c.Get(t.Context(), 7)
	c.Delete(t.Context(), 7)
	if u, _ := c.Get(t.Context(), 7); u.Version != 1 {
		t.Errorf("got %+v", u)
	}
	version = 2 // the replica has caught up
	if u, _ := c.Get(t.Context(), 7); u.Version != 2 {
		t.Errorf("what was loaded from the lagging replica was stored: %+v", u)
	}
	if err := c.Set(t.Context(), 7, user{"set", 3}); err != nil {
		t.Fatal(err)
	}
	if u, _ := c.Get(t.Context(), 7); u.Version != 3 {
		t.Errorf("what the caller set is %+v", u)
	}
}

// A Delete that cannot name one of its keys deletes none, and says so.
func TestADeleteWithABadKeyDeletesNone(t *testing.T) {
	rdb := redistest.Start(t).Client()
	c := must[string, user](t)(cacheaside.New(mayfly.Namespace[string, user]{Redis: rdb, Prefix: "bad:", TTL: time.Minute},
		func(context.Context, string) (user, error) { return user{}, nil }, cacheaside.Options{RedisTimeout: patient}))
	c.Set(t.Context(), "a", user{})
	err := c.Delete(t.Context(), "a", "")
	if err == nil || !strings.Contains(err.Error(), "no key of this call was deleted") || !exists(t, rdb, "bad:a") {
		t.Errorf("%v; exists %v", err, exists(t, rdb, "bad:a"))
	}
}

// What refuses loaded values goes on for as long as the longest Hold says, whatever deletes the key in between, and a Clear leaves it.
func holdIsNotShortened(t *testing.T, rdb redis.UniversalClient) {
	version, ns := 1, namespace(t, rdb)
	open := func(hold time.Duration) *cacheaside.Cache[int, user] {
		return must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) { return user{"u", version}, nil },
			cacheaside.Options{Hold: hold, RedisTimeout: patient}))
	}
	long, short := open(time.Hour), open(time.Second)
	if err := errors.Join(long.Delete(t.Context(), 7), short.Delete(t.Context(), 7), short.Set(t.Context(), 8, user{})); err != nil {
		t.Fatal(err)
	}
	if left := rdb.PTTL(t.Context(), ns.Prefix+"7").Val(); left < 50*time.Minute {
		t.Errorf("a Delete with less Hold leaves %v", left)
	}
	if err := long.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, rdb, ns.Prefix+"8") {
		t.Error("Clear leaves a value")
	}
	long.Get(t.Context(), 7)
	version = 2
	if u, err := long.Get(t.Context(), 7); u.Version != 2 || err != nil {
		t.Errorf("after a Clear what was loaded is stored: %+v, %v", u, err)
	}
	if rdb.Set(t.Context(), ns.Prefix+"7", "x", 2*time.Hour); long.Delete(t.Context(), 7) != nil || rdb.PTTL(t.Context(), ns.Prefix+"7").Val() > time.Hour {
		t.Error("the TTL of a value became a Hold")
	}
	if rdb.Del(t.Context(), ns.Prefix+"7"); rdb.RPush(t.Context(), ns.Prefix+"7", "a list").Err() != nil || long.Delete(t.Context(), 7) != nil {
		t.Error("a list under the key")
	}
}

func TestHoldEnds(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		version := 1
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			version++
			return user{"u", version}, nil
		}, cacheaside.Options{Hold: 5 * time.Second}))
		c.Delete(t.Context(), 7)
		for i, want := range []int{2, 3, 4, 4} { // after 0, 3, 6 and 9 seconds
			if u, err := c.Get(t.Context(), 7); u.Version != want || err != nil {
				t.Errorf("after %d s: %+v, %v, want version %d", 3*i, u, err, want)
			}
			synctest.Wait()
			time.Sleep(3 * time.Second)
		}
	})
}
