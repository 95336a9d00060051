// Package fieldttl keeps structs as Redis hashes whose fields end at their own times: Redis 7.4's field expiration.
//
//	type Session struct {
//		UserID int64  `redis:"user_id"`
//		IP     string `redis:"ip,ttl=1h"` // for privacy
//		CSRF   string `redis:"csrf_token,ttl=15m"`
//	}
//	sessions, err := fieldttl.New(mayfly.Namespace[string, Session]{
//		Name: "sessions", Redis: rdb, Prefix: "session:", TTL: 24 * time.Hour, Jitter: jitter.Default,
//	})
//	...
//	err = sessions.Set(ctx, "abc", Session{UserID: 1001, IP: "192.168.1.1", CSRF: "xyz123"})
//	e, err := sessions.Get(ctx, "abc")
//	e.Value.UserID, e.Value.CSRF, e.Alive("csrf_token") // after 20 minutes: 1001, "", false
//
// A field with a ttl ends by it, or with the key if that is earlier; one without lives as long as the key. The key has the namespace's TTL,
// with its jitter, from the Set on; [Store.Renew] begins it anew.
//
// Every exported field has a tag, or `redis:"-"`. Strings, numbers, bools and []byte are written as go-redis writes
// and scans them, so that HGetAll(...).Scan reads the same hash: a bool is 1 or 0, a time.Duration its nanoseconds. What has
// MarshalText and UnmarshalText, as time.Time has, is that text; the rest is JSON. A nil pointer is a field that is not there.
//
// # Redis
//
// Redis holds the only copy, so its failure is the caller's error and never an answer: [mayfly.ErrNotFound] says that there is no such
// hash. A write is one transaction, in which the key and the fields get their ends, and is not repeated if its reply
// is lost: [mayfly.ErrUnknownOutcome]. With Redis 8.0 fields are written by HSETEX, with 7.4 by HSET and HPEXPIRE. A server that has neither
// is found at the first use, which returns [mayfly.ErrUnsupported] and names its version, as every later one does: Redis before
// 7.4, Valkey before 9, miniredis. Nothing is emulated there.
//
// # Traps
//
// What others do to a hash by hand: HSET of a field takes its TTL away, and it lives as long as the key; HDEL and HSET, too; a hash whose last
// field ends is gone, key and all. [Store.SetFields] gives fields their TTLs again.
package fieldttl

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/truth"
)

// Store keeps one hash per key. It is safe for concurrent use, starts no goroutine and needs no Close.
type Store[K comparable, T any] struct {
	room   truth.Room[K, T]
	plan   *plan
	server server
}

// New returns a store of ns, whose TTL is that of the keys. It reads T's tags and does no I/O. The namespace has no Codec, for each
// field has its own form, and no Local tier. An error about a tag names the field and the tag.
func New[K comparable, T any](ns mayfly.Namespace[K, T]) (*Store[K, T], error) {
	room, err := truth.Of("fieldttl", ns)
	if ns.Codec != nil {
		err = errors.Join(err, errors.New("fieldttl: Namespace.Codec must be nil: each field is written in its own form"))
	}
	if ns.Local != nil {
		err = errors.Join(err, errors.New("fieldttl: Namespace.Local must be nil: a copy would not know when its fields end"))
	}
	plan, wrong := planOf(reflect.TypeFor[T]())
	if wrong != nil {
		err = errors.Join(err, fmt.Errorf("fieldttl: %w", wrong))
	}
	if err != nil {
		return nil, err
	}
	return &Store[K, T]{room: room, plan: plan}, nil
}

// Entry is what Get found: a value, and which of its fields are there.
type Entry[T any] struct {
	// Value has the fields that are alive. The others are zero.
	Value T

	plan  *plan
	alive [maxFields / 64]uint64
}

// Alive reports whether the field of this name, as the tag has it, was there: it had been set and its time had not come. A zero
// that is alive was set as zero. A name that T does not have is not alive.
func (e Entry[T]) Alive(field string) bool {
	if e.plan == nil {
		return false
	}
	i, ok := e.plan.byName[field]
	return ok && e.alive[i/64]>>(i%64)&1 == 1
}

// do runs f with the full key and the way of its server, and says what failed.
func (s *Store[K, T]) do(ctx context.Context, doing string, key K, f func(full string, way way) error) error {
	full, err := s.room.FullKey(key)
	var way way
	if err == nil {
		way, err = s.server.way(ctx, s.room.Redis, full)
	}
	if err == nil {
		err = f(full, way)
		s.server.forget(err)
	}
	if err == nil {
		return nil // without boxing the key
	}
	return s.room.Fail(doing, key, err)
}
