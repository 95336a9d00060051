package cacheaside_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// fragile is a codec that panics on some values.
type fragile struct{ mayfly.JSON[user] }

func (f fragile) Append(dst []byte, u user) ([]byte, error) {
	if u.Name == "unwritable" {
		panic(u.Name)
	}
	return f.JSON.Append(dst, u)
}

func (f fragile) Decode(src []byte) (user, error) {
	u, err := f.JSON.Decode(src)
	if u.Name == "unreadable" {
		panic(u.Name)
	}
	return u, err
}

// A codec that panics ends no program, in the background or not: what it does not write is not stored, and what it does not read is
// loaded anew.
func TestACodecThatPanics(t *testing.T) {
	rdb := redistest.Start(t).Client()
	ns := namespace(t, rdb)
	ns.Codec = fragile{}
	var events expect.Events
	ns.Observer = &events
	name := "unwritable"
	c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) { return user{Name: name}, nil }, cacheaside.Options{RedisTimeout: patient}))
	ctx := t.Context()
	if u, err := c.Get(ctx, 7); u.Name != name || err != nil {
		t.Errorf("%+v, %v", u, err)
	}
	expect.Eventually(t, "it is told", func() bool { return events.Count(mayfly.KindFill, mayfly.OutcomeFailed) == 1 })
	var panicked *mayfly.PanicError
	if err := c.Set(ctx, 7, user{Name: name}); !errors.As(err, &panicked) || panicked.Value != name {
		t.Error(err)
	}
	rdb.Set(ctx, ns.Prefix+"7", `{"Name":"unreadable"}`, time.Minute)
	name = "Ada"
	if u, err := c.Get(ctx, 7); u.Name != name || err != nil {
		t.Errorf("%+v, %v", u, err)
	}
	if n := events.Count(mayfly.KindBackend, mayfly.OutcomeFailed); n == 0 {
		t.Error("nobody is told of what cannot be read")
	}
}
