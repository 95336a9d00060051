package cacheaside_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// After Delete returned nil, no later call gets a value loaded before, in any cache.

// slowRow is a database of one row, and a load that takes a second between the reading and the answer.
type slowRow struct{ version atomic.Int64 }

func (d *slowRow) load(context.Context, int) (user, error) {
	v := d.version.Load()
	time.Sleep(time.Second)
	return user{Version: int(v)}, nil
}

func TestAGetAfterDeleteJoinsNoOlderLoad(t *testing.T) {
	for name, o := range map[string]struct {
		options cacheaside.Options
		plain   bool
		load    func(d *slowRow) func(context.Context, int, *cacheaside.Entry[user]) (cacheaside.Loaded[user], error)
	}{
		"stored": {},
		"plain":  {plain: true},
		"held":   {options: cacheaside.Options{Hold: time.Minute}},
		"not to be stored": {load: func(d *slowRow) func(context.Context, int, *cacheaside.Entry[user]) (cacheaside.Loaded[user], error) {
			return func(ctx context.Context, key int, _ *cacheaside.Entry[user]) (cacheaside.Loaded[user], error) {
				u, err := d.load(ctx, key)
				return cacheaside.Loaded[user]{Value: u, NoStore: true}, err
			}
		}},
		"not there": {load: func(d *slowRow) func(context.Context, int, *cacheaside.Entry[user]) (cacheaside.Loaded[user], error) {
			return func(ctx context.Context, key int, _ *cacheaside.Entry[user]) (cacheaside.Loaded[user], error) {
				u, err := d.load(ctx, key)
				if u.Version == 0 {
					err = mayfly.ErrNotFound
				}
				return cacheaside.Loaded[user]{Value: u}, err
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, rdb *redis.Client) {
				var d slowRow
				open := func() *cacheaside.Cache[int, user] {
					ns := namespace(t, rdb)
					ns.Plain = o.plain
					if o.load != nil {
						return must[int, user](t)(cacheaside.NewEntry(ns, o.load(&d), o.options))
					}
					return must[int, user](t)(cacheaside.New(ns, d.load, o.options))
				}
				readers, writer := []*cacheaside.Cache[int, user]{open(), open()}, open() // the second is for GetMany
				if o.options.Hold > 0 {
					expect.OK(t, writer.Delete(t.Context(), 7))
				}
				var early, late sync.WaitGroup
				for i, c := range readers {
					early.Go(func() { get(t, c, i) })
				}
				time.Sleep(500 * time.Millisecond)
				synctest.Wait() // the loads have read
				d.version.Add(1)
				expect.OK(t, writer.Delete(t.Context(), 7))
				for i, c := range readers {
					late.Go(func() {
						begun := time.Now()
						if v := get(t, c, i); v != 1 {
							t.Errorf("reader %d began after Delete, and got version %d", i, v)
						}
						if took := time.Since(begun); took > 2500*time.Millisecond {
							t.Errorf("reader %d waited %v: more than the load that ran and one more", i, took)
						}
					})
				}
				early.Wait()
				late.Wait()
			})
		})
	}
}

// get gets key 7, by GetMany if i is odd, and returns its version, 0 if there is none.
func get(t *testing.T, c *cacheaside.Cache[int, user], i int) int {
	t.Helper()
	if i%2 == 1 {
		found, err := c.GetMany(t.Context(), []int{7})
		expect.OK(t, err)
		return found[7].Version
	}
	u, err := c.Get(t.Context(), 7)
	if err != nil && u.Version != 0 {
		t.Error(err)
	}
	return u.Version
}

// The reply to a fill is slow, and meanwhile another process deletes the key.
func TestAGetAfterDeleteDoesNotJoinAFillThatWasSent(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var d slowRow
		slow := &slowReplies{name: "evalsha"}
		rdb.AddHook(slow)
		reader := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(ctx context.Context, key int) (user, error) {
			u, err := d.load(ctx, key)
			if key == 7 && u.Version == 0 {
				slow.by.Store(int64(500 * time.Millisecond))
			}
			return u, err
		}, cacheaside.Options{RedisTimeout: patient}))
		writer := must[int, user](t)(cacheaside.New(namespace(t, rdb), d.load, cacheaside.Options{RedisTimeout: patient}))
		expect.Value(reader.Get(t.Context(), 1))(t) // the script is known
		done := make(chan int)
		go func() { done <- get(t, reader, 0) }()
		time.Sleep(1100 * time.Millisecond) // the fill was executed
		slow.by.Store(0)
		d.version.Add(1)
		expect.OK(t, writer.Delete(t.Context(), 7))
		if v := get(t, reader, 0); v != 1 {
			t.Errorf("got version %d", v)
		}
		if v := <-done; v != 0 {
			t.Errorf("the call that was there before got version %d", v)
		}
	})
}

// slowReplies delays the replies to commands of a name.
type slowReplies struct {
	name string
	by   atomic.Int64
}

func (s *slowReplies) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slowReplies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if by := s.by.Load(); by > 0 && cmd.Name() == s.name {
			time.Sleep(time.Duration(by))
		}
		return err
	}
}

func (s *slowReplies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if by := s.by.Load(); by > 0 && cmds[0].Name() == s.name {
			time.Sleep(time.Duration(by))
		}
		return err
	}
}

// Other callers always claim a key first, and somebody always deletes it before they have loaded it: a call waits for LoadTimeout at most.
func TestDeletesDoNotKeepACallWaiting(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var d slowRow
		ns := namespace(t, rdb)
		c := must[int, user](t)(cacheaside.New(ns, d.load, cacheaside.Options{LoadTimeout: 3 * time.Second}))
		ctx, stop := context.WithCancel(t.Context())
		lease := func() {
			expect.OK(t, rdb.Set(t.Context(), ns.Prefix+"7", record.AppendLease(nil, record.NewID()), time.Second).Err())
		}
		lease()
		go func() {
			for ctx.Err() == nil {
				time.Sleep(500 * time.Millisecond)
				d.version.Add(1)
				lease()
			}
		}()
		begun := time.Now()
		if v := get(t, c, 0); v < 1 || time.Since(begun) > 4200*time.Millisecond {
			t.Errorf("got version %d after %v", v, time.Since(begun))
		}
		stop()
		time.Sleep(time.Second)
	})
}

// Many readers in several caches, and a Delete now and then: no call gets a value that was outdated when the call began, and none waits long.
func TestReadersAmongDeletes(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var d slowRow
		open := func() *cacheaside.Cache[int, user] {
			return must[int, user](t)(cacheaside.New(namespace(t, rdb), d.load, cacheaside.Options{LoadTimeout: time.Minute}))
		}
		caches, writer := []*cacheaside.Cache[int, user]{open(), open(), open(), open()}, open()
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		var deleted atomic.Int64 // the version for which the last Delete was made
		var all sync.WaitGroup
		all.Go(func() {
			for ctx.Err() == nil {
				v := d.version.Add(1)
				expect.OK(t, writer.Delete(t.Context(), 7))
				deleted.Store(v)
				time.Sleep(70 * time.Millisecond)
			}
		})
		for i := range 16 {
			all.Go(func() {
				for ctx.Err() == nil {
					begun, from := time.Now(), deleted.Load()
					if v := get(t, caches[i%len(caches)], i/len(caches)); int64(v) < from {
						t.Errorf("got version %d, which was over when the call began: %d", v, from)
					}
					if took := time.Since(begun); took > 3300*time.Millisecond {
						t.Errorf("a call took %v", took)
					}
				}
			})
		}
		all.Wait()
	})
}

// Redis's clock is set back by ten minutes: a value that then seems to have more time left than it was stored with may have any age.
func TestAClockThatIsSetBackGivesNoValueMoreTime(t *testing.T) {
	for _, local := range []bool{false, true} {
		inBubbles(t, func(t *testing.T, rdb *redis.Client) {
			var d slowRow
			ns := namespace(t, rdb)
			ns.TTL = 2 * time.Second
			if local {
				withLocal(t, &ns, mayfly.LocalOptions{})
			}
			c := must[int, user](t)(cacheaside.New(ns, d.load, cacheaside.Options{}))
			get(t, c, 0)
			d.version.Add(1)
			expect.OK(t, rdb.PExpire(t.Context(), ns.Prefix+"7", 10*time.Minute+time.Second).Err())
			if e, ok, err := c.Lookup(t.Context(), 7); ok || err != nil {
				t.Errorf("local %v: Lookup found %+v, %v", local, e, err)
			}
			if v := get(t, c, 0); v != 1 {
				t.Errorf("local %v: got version %d", local, v)
			}
		})
	}
}

// After a Delete that failed, later calls of the cache load, and join no call that asked Redis before, even if it waits for another process that
// loads and stores the old value.
func TestAGetAfterAFailedDeleteJoinsNoOlderCall(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var version atomic.Int64
		load := func(context.Context, int) (user, error) {
			v := version.Load()
			time.Sleep(200 * time.Millisecond) // less than until the Delete is repeated
			return user{Version: int(v)}, nil
		}
		other := must[int, user](t)(cacheaside.New(namespace(t, redis.NewClient(rdb.Options())), load, cacheaside.Options{}))
		slow := &slowReplies{name: "get"}
		rdb.AddHook(slow)
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, cacheaside.Options{}))
		for i, read := range []func(i int) int{
			func(i int) int { return expect.Value(c.Get(t.Context(), i))(t).Version },
			func(i int) int { return expect.Value(c.GetMany(t.Context(), []int{i, 100 + i}))(t)[i].Version },
		} {
			version.Store(1)
			var early sync.WaitGroup
			early.Go(func() { other.Get(t.Context(), i) })
			synctest.Wait()
			slow.by.Store(int64(50 * time.Millisecond))
			early.Go(func() { c.Get(t.Context(), i) }) // has asked Redis, and waits for the reply
			time.Sleep(20 * time.Millisecond)
			version.Store(2) // the commit
			gone, hangUp := context.WithCancel(t.Context())
			hangUp()
			if err := c.Delete(gone, i); err == nil {
				t.Fatal("the Delete has not failed")
			}
			time.Sleep(60 * time.Millisecond) // the call waits for the other process
			slow.by.Store(0)
			if got := read(i); got != 2 {
				t.Errorf("read %d: version %d after a Delete for version 2", i, got)
			}
			early.Wait()
		}
	})
}
