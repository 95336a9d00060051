package cacheaside_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// An exit in the user's code, such as t.FailNow in a codec or an observer, ends its own goroutine and nobody else's wait.
type exits struct {
	mayfly.JSON[user]
	appends, decodes bool
	observes         mayfly.Kind
}

func (e *exits) Append(dst []byte, u user) ([]byte, error) {
	if e.appends {
		runtime.Goexit()
	}
	return e.JSON.Append(dst, u)
}

func (e *exits) Decode(src []byte) (user, error) {
	if e.decodes {
		runtime.Goexit()
	}
	return e.JSON.Decode(src)
}

func (e *exits) Observe(_ context.Context, event mayfly.Event) {
	if e.observes != 0 && event.Kind == e.observes {
		runtime.Goexit()
	}
}

func TestCodeThatExitsItsGoroutineKeepsNobodyWaiting(t *testing.T) {
	for _, how := range []struct {
		name string
		exits
		notFound bool
		served   bool // the value has been loaded: only storing it failed
	}{
		{name: "Append", exits: exits{appends: true}, served: true},
		{name: "Observer, of a load", exits: exits{observes: mayfly.KindLoad}},
		{name: "Observer, of a fill", exits: exits{observes: mayfly.KindFill}, served: true},
		{name: "NotFound", notFound: true},
	} {
		for _, batch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, batch %v", how.name, batch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ns, o, e := namespace(t, redistest.Start(t).Client()), cacheaside.Options{LoadTimeout: time.Second}, how.exits
					ns.Codec, ns.Observer = &e, &e
					origin := func() error { time.Sleep(time.Second / 2); return nil }
					if how.notFound {
						o.NotFound = func(error) bool { runtime.Goexit(); return false }
						origin = func() error { return errors.New("no row") }
					}
					c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) { return user{Name: "Ada"}, origin() }, o))
					if batch {
						c = must[int, user](t)(cacheaside.NewBatch(ns, func(_ context.Context, keys []int) (map[int]user, error) {
							if err := origin(); err != nil {
								return nil, err
							}
							return map[int]user{keys[0]: {Name: "Ada"}}, nil
						}, o))
					}
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					for range 2 { // the second waits for what the first has left of a lease
						var all sync.WaitGroup
						for range 2 {
							all.Go(func() {
								u, err := c.Get(ctx, 1)
								if batch {
									var got map[int]user
									got, err = c.GetMany(ctx, []int{1})
									u = got[1]
								}
								if ctx.Err() != nil || (u.Name == "Ada") != how.served || !how.served && !strings.Contains(fmt.Sprint(err), "Goexit") {
									t.Errorf("%+v, %v", u, err)
								}
							})
						}
						all.Wait()
					}
				})
			})
		}
	}
}

// A call about many keys that never comes to its loads, since the user's code ended it, holds up nobody who has joined them.
func TestACallThatEndsBeforeItsLoadsHoldsUpNobody(t *testing.T) {
	ns := namespace(t, redistest.Start(t).Client())
	ns.Observer = mayfly.ObserverFunc(func(_ context.Context, e mayfly.Event) {
		if e.Kind == mayfly.KindJoin {
			panic("an observer")
		}
	})
	loads, goOn := make(chan bool), make(chan bool)
	c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
		if key == 2 {
			close(loads)
			<-goOn
		}
		return user{Name: "Ada"}, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	defer close(goOn)
	all.Go(func() { c.Get(ctx, 2) })
	<-loads
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		c.GetMany(ctx, []int{1, 2})
	}()
	if u, err := c.Get(ctx, 1); u.Name != "Ada" || err != nil {
		t.Errorf("%+v, %v", u, err)
	}
}

// A codec that panics does not end the program, in the background or not: values that it cannot write are not stored, and values that it cannot
// read are loaded anew.
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
		t.Error("no event reports what cannot be read")
	}
}
