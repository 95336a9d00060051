package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
)

// Hook returns a go-redis hook that times the commands of a client, as mayfly_redis_operation_duration_seconds, and counts their errors:
//
//	rdb.AddHook(observer.Hook("cache"))
//
// Errors are counted under the given name in place of a namespace. If the client's ContextTimeoutEnabled is false, hooks do not see the
// caches' own commands.
func (m *Observer) Hook(name string) redis.Hook { return hook{m, m.bounded(name)} }

type hook struct {
	m    *Observer
	name string
}

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		h.saw(ctx, operation(cmd.Name()), time.Since(begun), err)
		return err
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmds)
		failed := err
		for _, cmd := range cmds { // a pipeline's error is that of its first command, which may be a normal answer
			if !answer(failed) {
				break
			}
			failed = cmd.Err()
		}
		h.saw(ctx, "pipeline", time.Since(begun), failed)
		return err
	}
}

func (h hook) saw(ctx context.Context, operation string, took time.Duration, err error) {
	key := seriesKey{namespace: operation}
	found, ok := h.m.series.Load(key)
	if !ok {
		found, _ = h.m.series.LoadOrStore(key, &series{time: h.m.redis.WithLabelValues(operation)})
	}
	h.m.observe(ctx, found.(*series).time, took)
	if !answer(err) {
		h.m.sums[backend].WithLabelValues(h.name, mayfly.Event{Err: err}.ErrorKind()).Inc()
	}
}

// answer reports whether err says nothing about Redis's health: the key does not exist, or the server lacks a script, whose source is then
// sent.
func answer(err error) bool {
	return err == nil || errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "NOSCRIPT")
}

// operations are the commands with their own label; the others are "other".
var operations = map[string]bool{
	"get": true, "mget": true, "set": true, "getex": true, "getset": true, "del": true, "unlink": true, "expire": true, "pexpire": true, "pttl": true, "ttl": true,
	"eval": true, "evalsha": true, "evalsha_ro": true, "eval_ro": true, "incr": true, "incrby": true, "hget": true, "hmget": true, "hgetall": true, "hset": true,
	"hsetex": true, "hgetex": true, "lrange": true, "rpush": true, "lpush": true, "hello": true, "scan": true, "publish": true, "spublish": true, "ping": true, "exists": true,
}

func operation(name string) string {
	if operations[name] {
		return name
	}
	return "other"
}
