// Package fieldttl keeps structs as Redis hashes whose fields can have TTLs of their own. It needs Redis 7.4 or newer. Of two concurrent
// Sets of a field the later one wins, and what the earlier one wrote is lost. [Store.Update] changes fields depending on their current
// values, and loses nothing.
//
//	type Session struct {
//		UserID int64  `redis:"user_id"`
//		IP     string `redis:"ip,ttl=1h"` // for privacy
//		CSRF   string `redis:"csrf_token,ttl=15m"`
//	}
//	sessions, err := fieldttl.New(mayfly.Namespace[string, Session]{
//		Name: "sessions", Redis: rdb, Prefix: "session:", TTL: 24 * time.Hour, Jitter: jitter.Default,
//	}, fieldttl.Options{})
//	...
//	err = sessions.Set(ctx, "abc", Session{UserID: 1001, IP: "192.168.1.1", CSRF: "xyz123"})
//	e, err := sessions.Get(ctx, "abc")
//	e.Value.UserID, e.Value.CSRF, e.Alive("csrf_token") // after 20 minutes: 1001, "", false
//
// A field with a ttl expires after it, or with the key if that is earlier. A field without one lives as long as the key. The key has the
// namespace's TTL, with its jitter, from the Set on; [Store.Touch] resets it.
//
// Every exported field needs a tag, or `redis:"-"`. Strings, numbers, bools and []byte are written the way go-redis writes and scans them,
// so HGetAll(...).Scan reads the same hash: a bool is 1 or 0, a time.Duration is in nanoseconds. Types with MarshalText and UnmarshalText,
// such as time.Time, are written as that text, all others as JSON. A nil pointer is a field that the hash does not have. A number read into
// an any is a float64. An integer that a float64 cannot represent exactly becomes an int64, a uint64 or, if it is too large for these, a
// json.Number.
//
// # Redis
//
// Redis holds the only copy, so a failure of Redis is an error of the call; [mayfly.ErrNotFound] means that there is no such hash. A write
// is one transaction that sets the values and the TTLs of key and fields. It is sent once, so a write that returned nil leaves nothing
// behind that could still take effect. If its reply is lost, the error is [mayfly.ErrUnknownOutcome]: the write took effect, or it did not,
// or it will, once, when it arrives. Redis 8.0 gets HSETEX, 7.4 gets HSET and HPEXPIRE. On other servers (Redis before 7.4, Valkey before
// 9, miniredis) every call returns [errors.ErrUnsupported] with the server's version; nothing is emulated.
//
// # Traps
//
// If other programs write the hash: HSET removes a field's TTL, so the field lives as long as the key. So does HDEL followed by HSET.
// [Store.SetFields] sets the TTL again. When the last field expires, the key is gone.
package fieldttl

import (
	"context"
	"reflect"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/keyspace"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Options adjust a store. The zero value works.
type Options struct {
	// RedisTimeout is how long one request to Redis may take, whatever the client's own timeouts. Waiting for a connection that other
	// calls of this process hold does not count. If a server has left five requests of this store in a row unanswered, the store does not ask it for
	// half a second, and then lets one caller at a time ask. Until it answers, calls about its keys fail at once. Zero is 150 ms.
	RedisTimeout time.Duration
}

// Store keeps one hash per key. It is safe for concurrent use, starts no goroutine and needs no Close.
type Store[K comparable, T any] struct {
	room   keyspace.Room[K, T]
	redis  sendonce.Bounded
	plan   *plan
	server server
}

// New returns a store of ns. The namespace's TTL is the TTL of the keys. New reads T's tags and does no I/O. An error about a tag names the
// field and the tag. The namespace must have no Codec, Plain, Clone, Cost or Local: each field has its own form, and hashes are not copied.
func New[K comparable, T any](ns mayfly.Namespace[K, T], o Options) (*Store[K, T], error) {
	room, c := keyspace.OwnForm("fieldttl", ns, "each field is written in its own form, and hashes are not copied")
	c.Refuse(ns.Local != nil, "Namespace.Local must be nil: a copy would not know when its fields end")
	c.TTL("Options.RedisTimeout", o.RedisTimeout)
	plan, err := planOf(reflect.TypeFor[T]())
	c.Wrap(err)
	if err := c.Err(); err != nil {
		return nil, err
	}
	return &Store[K, T]{room: room, redis: sendonce.To(ns.Redis, ns.Observer, room.Name, o.RedisTimeout), plan: plan}, nil
}

// Entry is what Get found: a value, and which of its fields were there.
type Entry[T any] struct {
	// Value has the fields that are alive. The others are zero.
	Value T

	plan  *plan
	alive [maxFields / 64]uint64
}

// Alive reports whether the field with this name in its tag was there: it had been set and had not expired. A zero that is alive was set as
// zero. A name that T does not have is not alive.
func (e Entry[T]) Alive(field string) bool {
	if e.plan == nil {
		return false
	}
	i, ok := e.plan.byName[field]
	return ok && e.alive[i/64]>>(i%64)&1 == 1
}

// do runs f with the full key and the way of its server. Its error says what failed.
func (s *Store[K, T]) do(ctx context.Context, doing string, key K, f func(full string, way way) error) error {
	return s.room.Do(doing, key, func(full string) error {
		way, err := s.server.way(ctx, s.redis, full)
		if err == nil {
			err = f(full, way)
			s.server.forget(err)
		}
		return err
	})
}
