// Package following has writes that are followed by something.
package following

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

func followed(ctx context.Context, rdb *redis.Client, id string, key string) { // want followed:`^ends \[\[3\] \[2\]\]$`
	n, _ := rdb.Incr(ctx, key).Result()
	if n == 1 {
		rdb.Expire(ctx, key, time.Minute)
	}

	rdb.Set(ctx, "set:"+id, 1, 0)
	rdb.PExpire(ctx, "set:"+id, time.Minute)

	hash := fmt.Sprintf("hash:%s", id)
	rdb.HSet(ctx, fmt.Sprintf("hash:%s", id), "f", 1)
	rdb.ExpireAt(ctx, hash, time.Now())

	rdb.LPush(ctx, "list", 1)
	rdb.GetEx(ctx, "list", time.Minute)

	rdb.SAdd(ctx, "set", 1)
	rdb.Set(ctx, "set", 1, time.Minute)

	rdb.XAdd(ctx, &redis.XAddArgs{Stream: "stream"})
	rdb.Expire(ctx, "stream", time.Minute)

	rdb.MSet(ctx, "m1", 1, "m2", 2)
	rdb.Expire(ctx, "m1", time.Minute)
	rdb.Expire(ctx, "m2", time.Minute)

	rdb.MSet(ctx, "m3", 1, "m4", 2) // want `MSet leaves`
	rdb.Expire(ctx, "m3", time.Minute)

	rdb.Do(ctx, "incr", "do")
	rdb.Do(ctx, "EXPIRE", "do", 60)
}

func notFollowed(ctx context.Context, rdb *redis.Client, id, key, another string) { // want notFollowed:`^ends \[\[3\] \[2\]\]$`
	rdb.Expire(ctx, key, time.Minute)
	rdb.Incr(ctx, key) // want `Incr creates`

	rdb.HSet(ctx, "a:"+id, "f", 1) // want `HSet creates`
	rdb.Expire(ctx, "b:"+id, time.Minute)

	rdb.LPush(ctx, another, 1) // want `LPush creates`
	rdb.ExpireXX(ctx, another, time.Minute)
	rdb.ExpireGT(ctx, another, time.Minute)
	rdb.TTL(ctx, another)
	rdb.GetEx(ctx, another, -1)
	rdb.Del(ctx, another) // the process may die before it

	rdb.MSet(ctx, "m1", 1, "m2", 2) // want `MSet leaves`
	rdb.Expire(ctx, "m3", time.Minute)

	rdb.GetEx(ctx, "count", time.Minute) // of nothing, if it is not there
	rdb.Incr(ctx, "count")               // want `Incr creates`
	rdb.SetArgs(ctx, "count", 1, redis.SetArgs{KeepTTL: true})

	rdb.SAdd(ctx, "set", 1) // want `SAdd creates`
	rdb.Persist(ctx, "set") // want `Persist leaves`
}

func created(ctx context.Context, rdb *redis.Client, key string) { // want created:`^ends \[\[2\]\]$`
	if rdb.SetNX(ctx, key, 0, time.Minute).Val() {
		fmt.Println("a new window")
	}
	rdb.Incr(ctx, key) // it has the TTL that it was made with

	rdb.SetNX(ctx, "other", 0, time.Minute)
	rdb.Incr(ctx, "another") // want `Incr creates`
	rdb.Set(ctx, key, 1, 0)  // want `Set: an expiration of 0`
}

func deferred(ctx context.Context, rdb *redis.Client, a, b, c, d, e string) { // want deferred:`^ends .*$`
	defer rdb.Expire(ctx, a, time.Minute)
	rdb.Incr(ctx, a)

	defer func() {
		rdb.Expire(ctx, b, time.Minute)
		rdb.Incr(ctx, c) // want `Incr creates`
	}()
	rdb.HSet(ctx, b, "f", 1)
	rdb.Expire(ctx, c, time.Minute)

	defer rdb.Expire(ctx, d, time.Minute) // runs after the next
	defer rdb.HSet(ctx, d, "f", 1)

	defer rdb.LPush(ctx, e, 1) // want `LPush creates`
	rdb.Expire(ctx, e, time.Minute)
	defer rdb.Expire(ctx, e, time.Minute) // and runs before

	func() {
		defer rdb.Expire(ctx, "inner", time.Minute)
	}()
	rdb.Incr(ctx, "inner") // want `Incr creates`
}

func pipelines(ctx context.Context, rdb *redis.Client, keys []string) {
	rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.RPush(ctx, "a", 1)
		p.Expire(ctx, "a", time.Minute)
		p.SAdd(ctx, "b", 1)
		p.SMembers(ctx, "b")
		p.Del(ctx, "b")
		p.Incr(ctx, "c") // want `Incr creates`
		return nil
	})
}

func loops(ctx context.Context, rdb *redis.Client, keys []string) { // want loops:`^ends \[\[2\]\]$`
	p := rdb.TxPipeline()
	for _, k := range keys {
		p.HSet(ctx, k, "f", 1)
	}
	for _, key := range keys {
		p.Expire(ctx, key, time.Minute) // perhaps the same
	}
	p.Exec(ctx)
}

// ids are what a key is made of in two ways.
func ids(ctx context.Context, rdb *redis.Client, ids []string) { // want ids:`^ends \[\[2\]\]$`
	for _, id := range ids {
		rdb.HSet(ctx, "task:"+id, "f", 1) // want `HSet creates`
		rdb.SetNX(ctx, "unique:"+id, 1, time.Minute)
		rdb.Incr(ctx, "all") // want `Incr creates`
		rdb.Set(ctx, id, 1, time.Minute)
	}
}

func indexed(ctx context.Context, rdb *redis.Client, keys []string, i int) { // want indexed:`^ends \[\[2 3\]\]$`
	rdb.Incr(ctx, keys[0])
	rdb.Expire(ctx, keys[i], time.Minute) // perhaps the same
}

func scripts(ctx context.Context, rdb *redis.Client, s *redis.Script, a, b, c, d string, keys []string) {
	rdb.Incr(ctx, a)
	rdb.Eval(ctx, "return redis.call('expire', KEYS[1], 60)", []string{a})
	rdb.Incr(ctx, b)
	s.Run(ctx, rdb, []string{"x", b})
	rdb.Incr(ctx, c)
	rdb.Do(ctx, "eval", "return 1", 1, c)
	rdb.Incr(ctx, d) // want `Incr creates`
	rdb.Eval(ctx, "return 1", []string{a})
}

func listed(ctx context.Context, rdb *redis.Client, s *redis.Script, keys []string) {
	rdb.Incr(ctx, "a") // the script may have it
	s.Run(ctx, rdb, keys)
}

func reassigned(ctx context.Context, rdb *redis.Client, key string) { // want reassigned:`^ends \[\[2\]\]$`
	key = "prefix:" + key
	rdb.Incr(ctx, key)
	rdb.Expire(ctx, key, time.Minute)
	other := key
	rdb.HSet(ctx, other, "f", 1)
	if key == "" {
		other = "none"
	}
	rdb.Expire(ctx, key, time.Minute) // perhaps the same
}

type counters struct {
	rdb    *redis.Client
	prefix string
}

func (c *counters) key(id string) string { return c.prefix + id }

func (c *counters) hit(ctx context.Context, id string) { // want hit:`^ends \[\[\-1 1\]\]$`
	c.rdb.Incr(ctx, c.key(id))
	c.rdb.Expire(ctx, c.key(id), time.Minute)
	c.rdb.Incr(ctx, c.prefix+"all")                 // want `Incr creates`
	defer c.rdb.HSet(ctx, string(c.prefix), "f", 1) // want `HSet creates`
}

func later(ctx context.Context, rdb *redis.Client, key string) {
	rdb.Incr(ctx, key) // want `Incr creates`
	key = "now"
	rdb.Set(ctx, "now", 1, time.Minute)
}

type kind string

func converted(ctx context.Context, rdb *redis.Client, name string) { // want converted:`^ends \[\[2\]\]$`
	k := kind(name)
	rdb.Incr(ctx, string(k))
	rdb.Set(ctx, name, 1, time.Minute)
}

func unknown(ctx context.Context, rdb *redis.Client, one, two *redis.XAddArgs, key string) { // want unknown:`^ends \[\[4\]\]$`
	rdb.XAdd(ctx, one)
	rdb.Expire(ctx, key, time.Minute) // perhaps of that
	rdb.XAdd(ctx, two)                // want `XAdd creates`
	rdb.Set(ctx, key, 1, time.Minute)
}
