package fieldttl_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

type basket struct {
	User  int64     `redis:"user"`
	Items []string  `redis:"items,ttl=1h"`
	Note  *string   `redis:"note,ttl=15m"`
	Seen  time.Time `redis:"seen"`
}

type entry = fieldttl.Entry[basket]

// update is what every backend does.
func update(t *testing.T, o opened) {
	s, ctx := store[basket](t, o), t.Context()
	note := "a note"
	add := func(e entry) (basket, error) {
		if e.Value.User != 0 || e.Alive("user") {
			t.Error("a field is seen that was not named")
		}
		e.Value.Items = append(e.Value.Items, "a book")
		e.Value.User = 99 // not named
		if e.Value.Note = nil; !e.Alive("note") {
			e.Value.Note = &note
		}
		return e.Value, nil
	}
	if _, err := s.Update(ctx, "u", add, "items"); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("of no hash: %v", err)
	}
	expect.OK(t, s.Set(ctx, "u", basket{User: 7, Items: []string{"a pen"}}))
	want := []string{"a pen", "a book"}
	if b := expect.Value(s.Update(ctx, "u", add, "items", "note"))(t); !slices.Equal(b.Items, want) || *b.Note != note {
		t.Errorf("stored %+v", b)
	}
	e := expect.Value(s.Get(ctx, "u"))(t)
	if e.Value.User != 7 || !slices.Equal(e.Value.Items, want) || e.Value.Note == nil || *e.Value.Note != note {
		t.Errorf("got %+v", e.Value)
	}
	ofKey, ofFields, err := s.TTLs(ctx, "u")
	expect.OK(t, err)
	for name, want := range map[string]time.Duration{"items": time.Hour, "note": 15 * time.Minute, "user": day} {
		if got := ofFields[name]; got > want || got < want-time.Minute || ofKey < day-time.Minute {
			t.Errorf("%s has %v left, the key %v", name, got, ofKey)
		}
	}

	expect.Value(s.Update(ctx, "u", add, "note"))(t) // takes it away
	if e := expect.Value(s.Get(ctx, "u"))(t); e.Alive("note") || !slices.Equal(e.Value.Items, want) {
		t.Errorf("got %+v", e.Value)
	}
	no := errors.New("no")
	if b, err := s.Update(ctx, "u", func(entry) (basket, error) { return basket{User: 1}, no }, "user"); !errors.Is(err, no) || b.User != 0 {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := s.Update(ctx, "u", add, "nosuch"); err == nil {
		t.Error("a name that is no field")
	}
	if _, err := s.Update(ctx, "u", add); err == nil {
		t.Error("no field")
	}
}

// updateLosesNothing has callers who add items all at once.
func updateLosesNothing(t *testing.T, o opened) {
	s, ctx := store[basket](t, o), t.Context()
	expect.OK(t, s.Set(ctx, "u", basket{User: 7}))
	const callers = 20
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			if _, err := s.Update(ctx, "u", func(e entry) (basket, error) {
				e.Value.Items = append(e.Value.Items, "a book")
				return e.Value, nil
			}, "items"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if e := expect.Value(s.Get(ctx, "u"))(t); len(e.Value.Items) != callers {
		t.Errorf("%d items of %d", len(e.Value.Items), callers)
	}
}

// An Update whose reply is lost may be done, and is not sent again.
func TestUpdateWithALostReply(t *testing.T) {
	inBothWays(t, func(t *testing.T, o opened, srv *redistest.Server) {
		s, ctx := store[basket](t, o), t.Context()
		expect.OK(t, s.Set(ctx, "u", basket{User: 7}))
		one := func(e entry) (basket, error) { e.Value.User++; return e.Value, nil }
		expect.Value(s.Update(ctx, "u", one, "user"))(t) // the script is known
		srv.DropReply("evalsha")
		if _, err := s.Update(ctx, "u", one, "user"); !errors.Is(err, mayfly.ErrUnknownOutcome) {
			t.Errorf("got error %v", err)
		}
		if e := expect.Value(s.Get(ctx, "u"))(t); e.Value.User != 9 {
			t.Errorf("got %+v", e.Value)
		}
	})
}
