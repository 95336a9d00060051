package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/sliding"
)

// A session is written by one process, and read by all. Its n-th write is n itself: a Delete every eighth time, then a Create,
// else an Update or a Set. The truth knows which was begun last, and which was acknowledged last: what is there is one of those
// from the one to the other. A session of which nobody knows what became of a write is written no more.
const round = 8

func deletes(n int64) bool { return n%round == 0 }

type sessions struct {
	world, name string
	store       *sliding.Store[string, int64]
}

func sessionsOf(world string, rdb redis.UniversalClient, o sliding.Options, name string) *sessions {
	ns := mayfly.Namespace[string, int64]{Name: name, Redis: rdb, Prefix: name + ":", TTL: 10 * time.Minute}
	return &sessions{world, name, mayfly.Must(sliding.New(ns, o))}
}

// own writes sessions as long as working has no end, one after the other. Readers find the current one by its process.
func (s *sessions) own(working, ctx context.Context, d *truth, process string, pause func()) {
	for working.Err() == nil {
		now := d.era(ctx, s.world)
		if !now.calm() {
			<-time.After(20 * time.Millisecond)
			continue
		}
		key := fmt.Sprint(s.name, " of ", process, " ", rand.Uint64())
		must(d.rdb.HSet(ctx, "session:"+key, "era", int64(now), "begun", 0, "done", 0).Err())
		must(d.rdb.HSet(ctx, "sessions:"+s.name, process, key).Err())
		s.write(working, ctx, d, key, now, pause)
	}
}

func (s *sessions) write(working, ctx context.Context, d *truth, key string, began era, pause func()) {
	for n := int64(1); working.Err() == nil; n++ {
		must(d.rdb.HSet(ctx, "session:"+key, "begun", n).Err())
		was, err := s.change(ctx, key, n)
		d.count("sliding writes")
		same := d.era(ctx, s.world) == began
		switch {
		case !same:
			return
		case errors.Is(err, mayfly.ErrNotFound), errors.Is(err, mayfly.ErrExists), was != 0 && was != n-1:
			wrong("sliding: write %d of session %s found %d: %v", n, key, was, err)
			return
		case err != nil:
			if errors.Is(err, mayfly.ErrUnknownOutcome) {
				d.count("sliding writes of unknown outcome")
			} else {
				d.count("sliding writes that failed")
			}
			return
		}
		must(d.rdb.HSet(ctx, "session:"+key, "done", n).Err())
		pause()
	}
}

// change makes the n-th write. was is what an Update found, else zero.
func (s *sessions) change(ctx context.Context, key string, n int64) (was int64, err error) {
	switch {
	case deletes(n):
		return 0, s.store.Delete(ctx, key)
	case deletes(n - 1):
		return 0, s.store.Create(ctx, key, n)
	case n%2 == 0:
		return 0, s.store.Set(ctx, key, n)
	}
	_, err = s.store.Update(ctx, key, func(v int64) (int64, error) { was = v; return n, nil })
	return was, err
}

// read reads a session that some process writes.
func (s *sessions) read(ctx context.Context, d *truth) {
	all, err := d.rdb.HVals(ctx, "sessions:"+s.name).Result()
	must(err)
	if len(all) == 0 {
		return
	}
	key := all[rand.N(len(all))]
	began, done, _ := d.session(ctx, key)
	before := d.era(ctx, s.world)
	get := s.store.Get
	if rand.N(2) == 0 {
		get = s.store.Peek
	}
	v, err := get(ctx, key)
	_, _, begun := d.session(ctx, key)
	d.count("sliding reads")
	deleted := begun / round * round // the last Delete that was begun, 0 before the first Create
	switch {
	case err != nil && !errors.Is(err, mayfly.ErrNotFound):
		d.count("sliding reads that failed")
	case err == nil && done <= v && v <= begun && !deletes(v), err != nil && done <= deleted:
	case before.calm() && before == began && d.era(ctx, s.world) == before:
		wrong("sliding: session %s was read as %d (%v) when %d was acknowledged and %d begun", key, v, err, done, begun)
	default:
		d.count("sliding wrong reads while Redis lost data")
	}
}

// session returns what is known of a session: the era in which it is written, and the writes done and begun.
func (d *truth) session(ctx context.Context, key string) (e era, done, begun int64) {
	values, err := d.rdb.HMGet(ctx, "session:"+key, "era", "done", "begun").Result()
	must(err)
	var n [3]int64
	for i, v := range values {
		fmt.Sscan(fmt.Sprint(v), &n[i])
	}
	return era(n[0]), n[1], n[2]
}
