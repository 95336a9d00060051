package strategy

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

// byHand is the TTL guide's code in Go: what a program with a Redis client and no library does. It treats a failed
// Redis like a Redis without the key.
type byHand[V any] struct {
	strategy Strategy
	o        Options
	load     func(ctx context.Context, key int) (V, error)
}

// stored is what it stores: the value, and how long its load took, which is needed to decide when to renew it.
type stored[V any] struct {
	Value V
	Cost  time.Duration
}

func (h *byHand[V]) get(ctx context.Context, key int) (v V, err error) {
	begun := time.Now()
	full := h.o.Prefix + strconv.Itoa(key)
	found, left, ok := h.look(ctx, full)
	if ok && !(left > 0 && h.strategy.Early.Due(h.o.TTL, left, found.Cost, rand.Float64())) {
		h.tell(ctx, full, mayfly.OutcomeHitRedis, begun)
		return found.Value, nil
	}
	if v, err = h.load(ctx, key); err != nil {
		return v, err
	}
	if text, err := json.Marshal(stored[V]{v, time.Since(begun)}); err == nil {
		h.o.Redis.Set(ctx, full, text, h.strategy.Jitter.TTL(h.o.TTL))
	}
	h.tell(ctx, full, mayfly.OutcomeMiss, begun)
	return v, nil
}

func (h *byHand[V]) fill(ctx context.Context, values map[int]V) error {
	pipe := h.o.Redis.Pipeline()
	for key, v := range values {
		text, err := json.Marshal(stored[V]{Value: v})
		if err != nil {
			return err
		}
		pipe.Set(ctx, h.o.Prefix+strconv.Itoa(key), text, h.strategy.Jitter.TTL(h.o.TTL))
	}
	_, err := pipe.Exec(ctx)
	return err
}

func (h *byHand[V]) kept(ctx context.Context, key int) Kept {
	if left := h.o.Redis.PTTL(ctx, h.o.Prefix+strconv.Itoa(key)).Val(); left > 0 {
		return Kept{In: mayfly.OutcomeHitRedis, Left: left}
	}
	return Kept{}
}

// look reads the value, and the time it has left if that matters.
func (h *byHand[V]) look(ctx context.Context, full string) (found stored[V], left time.Duration, ok bool) {
	var get *redis.StringCmd
	if h.strategy.Early == earlyrefresh.Never {
		get = h.o.Redis.Get(ctx, full)
	} else {
		pipe := h.o.Redis.Pipeline()
		get = pipe.Get(ctx, full)
		pttl := pipe.PTTL(ctx, full)
		pipe.Exec(ctx) // each command has its own error
		left = pttl.Val()
	}
	text, err := get.Bytes()
	return found, left, err == nil && json.Unmarshal(text, &found) == nil
}

func (h *byHand[V]) tell(ctx context.Context, full string, how mayfly.Outcome, begun time.Time) {
	if h.o.Observer != nil {
		h.o.Observer.Observe(ctx, mayfly.Event{Kind: mayfly.KindRead, Outcome: how, Namespace: h.o.Name, Key: full, Took: time.Since(begun)})
	}
}
