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

// Life is how long one value lives, if not as long as the others.
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

// encodeFor is encode of a value with a life that was checked.
func (s *Store[K, V]) encodeFor(v V, l Life) ([]byte, error) {
	if s.room.MaxTTL == 0 {
		return nil, errors.New("Namespace.MaxTTL is zero, so no value has a life of its own: set it to the longest that one may be given")
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

// create writes rec where nothing is.
func (s *Store[K, V]) create(ctx context.Context, full string, rec []byte, age mode) error {
	defer s.wrote(ctx, full)()
	if s.scripted() {
		return s.write(ctx, full, rec, age)
	}
	err := sendonce.Write(ctx, s.redis, full, "set", full, rec, "px", s.ttl, "nx")
	if errors.Is(err, mayfly.ErrNotFound) { // its answer for what is there
		return mayfly.ErrExists
	}
	return s.lookAfter(ctx, full, rec, err)
}

// lookAfter says what became of a write of rec. If its reply was lost, and rec is under its key, then it was done; and as it was sent
// once, nothing of it is left that could still come. What has no id looks like the work of others: of that nobody knows.
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

// wrote makes the local tier forget full before a write, and what it returns tells the others after it.
func (s *Store[K, V]) wrote(ctx context.Context, full string) func() {
	s.local.Forget(full)
	return func() { s.local.Changed(ctx, full) }
}

// Set stores v under key, whatever is there, and gives it the whole TTL. The value's age, where [Options.MaxAge] counts
// it, goes on, and so does a life of its own: to begin anew, Delete and Create, or SetFor. Of two concurrent Sets the later wins; to change a value by what it was,
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
		// GET, so that what is not a string is refused, not replaced.
		err = sendonce.Write(ctx, s.redis, full, "set", full, rec, "px", s.ttl, "get")
		if errors.Is(err, mayfly.ErrNotFound) { // nothing was there
			return nil
		}
		return s.lookAfter(ctx, full, rec, err)
	})
}

// Update replaces the value of key by what change makes of it, and gives it the whole TTL. If somebody else changed it
// meanwhile, change is called again with what they made of it, so no update is lost; it must not have other effects. An
// error of change ends it, and nothing is stored. It returns what was stored, and mayfly.ErrNotFound if there is
// nothing to change.
//
// If a reply was lost it is sent again, as each sending fails but where it finds what was read. If it then finds neither that nor its
// own work, another write may have come after it, of which nobody knows: mayfly.ErrUnknownOutcome. (A plain value is sent once.)
func (s *Store[K, V]) Update(ctx context.Context, key K, change func(V) (V, error)) (v V, err error) {
	err = s.room.Do("update", key, func(full string) error {
		if change == nil {
			return errors.New("change is nil: give it a function that says what becomes of the value")
		}
		for try := 0; ; try++ {
			raw, err := s.ask1(ctx, full, "get", full)
			if err != nil {
				return sendonce.Answer(ctx, s.redis, full, err)
			}
			if v, err = s.decode(raw); err != nil {
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
