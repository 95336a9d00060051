package sliding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Rotate moves a value to another key, with the rest of its life. Call it after a login, for example, so that an id that somebody knew
// before does not become a logged-in one. If it fails halfway, both keys may exist. If the new key is taken, it returns [mayfly.ErrExists] and
// the old key stays.
//
// The two keys may be on two servers, so it takes three steps:
//
//  1. it reads the value under the old key
//  2. it creates the value under the new key
//  3. it removes the old key if that still holds what was read. If the value was updated in between, Rotate takes the update along and repeats this
//     step. If it was deleted, for example by a logout, Rotate deletes the new key too and returns mayfly.ErrNotFound
func (s *Store[K, V]) Rotate(ctx context.Context, from, to K) error {
	return s.room.Do("rotate", from, func(old string) error {
		full, err := s.room.FullKey(to)
		if err != nil {
			return err
		}
		if old == full {
			return errors.New("the new key is the old one")
		}
		raw, err := s.readToMove(ctx, old)
		if err != nil {
			return sendonce.Answer(ctx, s.redis, old, err)
		}
		if _, err := s.decode(slices.Clone(raw)); err != nil {
			return err
		}
		moved := renamed(raw)
		if err := s.create(ctx, full, moved, carry); err != nil {
			return err
		}
		for {
			newer, err := s.leave(ctx, old, raw)
			switch {
			case errors.Is(err, mayfly.ErrNotFound):
				if lost := s.Delete(ctx, to); lost != nil { // the copy may still be there: that is not "not found"
					return fmt.Errorf("the value was deleted while it moved, and its copy under the new key may still be there: %w", lost)
				}
				return err
			case newer == nil || err != nil:
				return err
			}
			next := renamed(newer)
			switch err := s.swap(ctx, full, moved, next); {
			case errors.Is(err, mayfly.ErrExists):
				return fmt.Errorf("the new key was written to by somebody else: %w", err)
			case err != nil:
				return err
			}
			raw, moved = newer, next
		}
	})
}

// readToMove reads a value. With a MaxAge the value must have room for its end.
func (s *Store[K, V]) readToMove(ctx context.Context, full string) (raw []byte, err error) {
	if s.scripted() {
		raw, _, err = s.readAged(ctx, full)
		return raw, err
	}
	return s.ask1(ctx, full, "get", full)
}

// leave removes full if it still holds raw, and otherwise returns what it holds. It is sent once: a repetition would find nothing,
// and take that for a deletion.
func (s *Store[K, V]) leave(ctx context.Context, full string, raw []byte) (newer []byte, err error) {
	defer s.wrote(ctx, full)()
	reply, err := leave.RunOnce(ctx, s.redis, full, headOf(raw), len(raw)).Result()
	if text, ok := reply.(string); ok {
		newer = []byte(text)
	}
	return newer, sendonce.Outcome(ctx, s.redis, full, err)
}

// renamed returns raw with a new id, if it has one: two Rotates of a value to the same key are two writes, and one of them fails.
func renamed(raw []byte) []byte {
	if hasID(raw) {
		id := record.NewID()
		raw = slices.Clone(raw)
		copy(raw[record.HeadLen-len(id):], id[:])
	}
	return raw
}

// hasID reports whether raw has an id, so that no other write ever has the same bytes.
func hasID(raw []byte) bool {
	kind, _, _ := record.Parse(raw)
	return kind == record.Session
}

// headOf returns the part of a value that tells it from every other: up to the id, which no other write has, or without an id all of it.
func headOf(raw []byte) []byte {
	if hasID(raw) {
		return raw[:record.HeadLen]
	}
	return raw
}

// leave  k, head, length: removes the value if it has this head and length. It answers 1, or the value that is there, or nothing.
var leave = lua(`local v = get()
if not v then return false end
if #v ~= tonumber(ARGV[2]) or string.sub(v, 1, #ARGV[1]) ~= ARGV[1] then return v end
return redis.call('DEL', KEYS[1])`)
