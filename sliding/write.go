package sliding

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Create stores v under key. If there is a value already, it returns [mayfly.ErrExists].
func (s *Store[K, V]) Create(ctx context.Context, key K, v V) error {
	return s.room.Do("create", key, func(full string) error {
		rec, err := s.encode(v, Life{})
		if err != nil {
			return err
		}
		return s.create(ctx, full, rec, begin)
	})
}

// Life is how long one value lives, if it differs from the others.
type Life struct {
	// TTL is how long the value lives without being used; each access renews it. At most Namespace.MaxTTL; zero is Namespace.TTL.
	TTL time.Duration

	// MaxAge is how old the value may become, however much it is used: at least TTL, at most Namespace.MaxTTL; zero is [Options].MaxAge.
	MaxAge time.Duration
}

// CreateFor is [Store.Create] for a value with a life of its own, such as the session of a user who wants to be remembered. Set, Update and
// Rotate keep that life. All programs that share the namespace must set Namespace.MaxTTL; a program without it resets the value to
// Namespace.TTL when it uses it.
func (s *Store[K, V]) CreateFor(ctx context.Context, key K, v V, l Life) error {
	return s.room.Do("create", key, func(full string) error {
		rec, err := s.encodeFor(v, l)
		if err != nil {
			return err
		}
		return s.create(ctx, full, rec, begin)
	})
}

// SetFor stores v under key, whatever is there, with a life of its own whose age counts from now; see [Store.CreateFor]. With the zero Life
// the value lives like the others from then on.
func (s *Store[K, V]) SetFor(ctx context.Context, key K, v V, l Life) error {
	return s.room.Do("set", key, func(full string) error {
		rec, err := s.encodeFor(v, l)
		if err != nil {
			return err
		}
		defer s.wrote(ctx, full)()
		return s.write(ctx, full, rec, anew)
	})
}

// encodeFor is encode for a value whose life has been checked.
func (s *Store[K, V]) encodeFor(v V, l Life) ([]byte, error) {
	if s.room.MaxTTL == 0 {
		return nil, errors.New("Namespace.MaxTTL is zero, so no value has a life of its own: set it to the longest life that a value may be given")
	}
	if l.TTL != 0 {
		if err := s.room.CheckTTL("Life.TTL", l.TTL); err != nil {
			return nil, err
		}
	}
	if l.MaxAge != 0 {
		if err := s.room.CheckTTL("Life.MaxAge", l.MaxAge); err != nil {
			return nil, err
		}
	}
	ttl, age := cmp.Or(l.TTL, s.room.TTL), cmp.Or(l.MaxAge, s.opt.MaxAge)
	if age != 0 && age < ttl {
		return nil, fmt.Errorf("the value would live for %v and be %v old at most (Life, or else Namespace.TTL and Options.MaxAge): give a Life.MaxAge that is as long", ttl, age)
	}
	return s.encode(v, l)
}

// create writes rec if the key does not exist.
func (s *Store[K, V]) create(ctx context.Context, full string, rec []byte, age mode) error {
	defer s.wrote(ctx, full)()
	if s.scripted() {
		return s.write(ctx, full, rec, age)
	}
	err := sendonce.Write(ctx, s.redis, full, "set", full, rec, "px", s.ttl, "nx")
	if errors.Is(err, mayfly.ErrNotFound) { // SET NX answers nil if the key exists
		return mayfly.ErrExists
	}
	return s.lookAfter(ctx, full, rec, err)
}

// lookAfter finds out whether rec was written. If the reply was lost and rec is under its key, it was written; and since it was sent
// once, no copy of it can still arrive. A value without an id looks like another writer's, so its outcome stays unknown.
func (s *Store[K, V]) lookAfter(ctx context.Context, full string, rec []byte, err error) error {
	if !errors.Is(err, mayfly.ErrUnknownOutcome) || !hasID(rec) {
		return err
	}
	there, lost := s.ask1(ctx, full, "get", full)
	if lost == nil && bytes.Equal(headOf(there), headOf(rec)) {
		return nil
	}
	return err
}

// wrote makes the local tier forget full before a write. The returned function tells the other processes after the write.
func (s *Store[K, V]) wrote(ctx context.Context, full string) func() {
	s.local.Forget(full)
	return func() { s.local.Changed(ctx, full) }
}

// Set stores v under key, whatever is there, and gives it the whole TTL. With [Options.MaxAge] the value keeps its age, and a life of its own
// stays too: to start anew, Delete and Create, or SetFor. Of two concurrent Sets the later wins. To change a value depending on what it was,
// use Update.
func (s *Store[K, V]) Set(ctx context.Context, key K, v V) error {
	return s.room.Do("set", key, func(full string) error {
		rec, err := s.encode(v, Life{})
		if err != nil {
			return err
		}
		defer s.wrote(ctx, full)()
		if s.scripted() {
			return s.write(ctx, full, rec, keep)
		}
		// GET, so that Redis refuses to replace a value that is not a string.
		err = sendonce.Write(ctx, s.redis, full, "set", full, rec, "px", s.ttl, "get")
		if errors.Is(err, mayfly.ErrNotFound) { // nothing was there
			return nil
		}
		return s.lookAfter(ctx, full, rec, err)
	})
}

// Update replaces the value of key by the result of change, and gives it the whole TTL. If somebody else changed the value
// meanwhile, Update calls change again with the new value, so no update is lost; change must not have other effects. An
// error of change ends Update, and nothing is stored. Update returns what was stored, or mayfly.ErrNotFound if there is
// nothing to change.
//
// If a reply was lost Update sends the write again, since each sending fails unless it finds what was read. If it then finds neither that nor its
// own write, another write may have replaced its own, and the outcome is unknown: mayfly.ErrUnknownOutcome. (A plain value is sent once.)
func (s *Store[K, V]) Update(ctx context.Context, key K, change func(V) (V, error)) (v V, err error) {
	err = s.room.Do("update", key, func(full string) error {
		if change == nil {
			return errors.New("change is nil: give it a function that returns the new value")
		}
		for try := 0; ; try++ {
			raw, err := s.ask1(ctx, full, "get", full)
			if err != nil {
				return sendonce.Answer(ctx, s.redis, full, err)
			}
			if v, err = s.decode(bytes.Clone(raw)); err != nil {
				return err
			}
			if v, err = change(v); err != nil {
				return err
			}
			rec, err := s.encode(v, Life{})
			if err != nil {
				return err
			}
			if err := s.swap(ctx, full, raw, rec); !errors.Is(err, mayfly.ErrExists) {
				return err
			}
			if err := sendonce.Rest(ctx, try); err != nil {
				return err
			}
		}
	})
	return v, err
}
