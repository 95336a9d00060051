package sliding_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// inTime runs test in a bubble for each way.
func inTime(t *testing.T, test func(t *testing.T, s *sliding.Store[string, cart], o sliding.Options, srv *redistest.Server)) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				test(t, mayfly.Must(sliding.New(namespace(srv.Client()), way.opt)), way.opt, srv)
			})
		})
	}
}

func TestAUsedValueLives(t *testing.T) {
	inTime(t, func(t *testing.T, s *sliding.Store[string, cart], o sliding.Options, _ *redistest.Server) {
		want(t, s.Create(t.Context(), "ada", cart{}), nil)
		pause := idle - time.Millisecond
		if o.TouchBelow > 0 { // an access at the start of its life did not renew it
			pause = time.Duration(o.TouchBelow*float64(idle)) - time.Millisecond
		}
		for range 20 {
			time.Sleep(pause)
			if _, err := s.Get(t.Context(), "ada"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(idle + time.Millisecond)
		_, err := s.Get(t.Context(), "ada")
		want(t, err, mayfly.ErrNotFound)
	})
}

func TestMaxAgeIsExact(t *testing.T) {
	const age = 12 * time.Hour
	inTime(t, func(t *testing.T, s *sliding.Store[string, cart], o sliding.Options, srv *redistest.Server) {
		if o.MaxAge == 0 {
			return
		}
		ctx := t.Context()
		use := map[string]func() error{
			"get":    func() error { _, err := s.Get(ctx, "k"); return err },
			"touch":  func() error { return s.Touch(ctx, "k") },
			"set":    func() error { return s.Set(ctx, "k", cart{}) },
			"update": func() error { _, err := s.Update(ctx, "k", func(c cart) (cart, error) { return c, nil }); return err },
			"rotate": func() error { return errors.Join(s.Rotate(ctx, "k", "other"), s.Rotate(ctx, "other", "k")) },
		}
		for what, use := range use {
			begun := time.Now()
			want(t, s.Create(ctx, "k", cart{}), nil)
			for time.Since(begun) < age-10*time.Minute {
				time.Sleep(10 * time.Minute)
				if err := use(); err != nil {
					t.Fatalf("%s after %v: %v", what, time.Since(begun), err)
				}
			}
			time.Sleep(age - time.Since(begun))
			if _, err := s.Peek(ctx, "k"); err != nil {
				t.Errorf("%s: gone before its time: %v", what, err)
			}
			time.Sleep(2 * time.Millisecond)
			if what == "set" { // there is nothing to replace: a new life
				if left := srv.Client().PTTL(ctx, "cart:k").Val(); left != -2 {
					t.Errorf("set: %v left beyond its time", left)
				}
			} else if err := use(); !errors.Is(err, mayfly.ErrNotFound) {
				t.Errorf("%s beyond its time: %v", what, err)
			}
			s.Delete(ctx, "k", "other")
		}
	})
}

// A value that was stored before there was a MaxAge gets its end at the first access.
func TestMaxAgeComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ctx := t.Context()
		before := mayfly.Must(sliding.New(namespace(srv.Client()), sliding.Options{}))
		after := mayfly.Must(sliding.New(namespace(srv.Client()), sliding.Options{MaxAge: time.Hour}))
		want(t, before.Create(ctx, "k", cart{Count: 7}), nil)
		for range 5 {
			c, err := after.Get(ctx, "k")
			if c.Count != 7 || err != nil {
				t.Fatalf("got %+v, %v", c, err)
			}
			time.Sleep(10 * time.Minute)
		}
		time.Sleep(10*time.Minute + 2*time.Millisecond)
		_, err := after.Get(ctx, "k")
		want(t, err, mayfly.ErrNotFound)

		srv.Client().Set(ctx, "cart:k", "{}", idle)
		if _, err := after.Get(ctx, "k"); err == nil || !strings.Contains(err.Error(), "no room for an end") {
			t.Errorf("a plain value: %v", err)
		}
	})
}

// A hot value costs no write per read, and no command per read with a local tier.
func TestSeldomRenewed(t *testing.T) {
	t.Parallel()
	effort.Alone(t)
	for _, local := range []bool{false, true} {
		for _, age := range []time.Duration{0, 12 * time.Hour} {
			t.Run(fmt.Sprintf("local %v, MaxAge %v", local, age), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Start(t)
					ns := namespace(srv.Client())
					if local {
						l := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: srv.Client(), Prefixes: []string{"cart:"}, MaxEntries: 100}))
						defer l.Close(context.Background())
						ns.Local = l
						defer func() {
							if s := l.Stats(); s.Hits*100 < (s.Hits+s.Misses)*95 {
								t.Errorf("%d local hits, %d misses", s.Hits, s.Misses)
							}
						}()
					}
					s := mayfly.Must(sliding.New(ns, sliding.Options{TouchBelow: 0.5, MaxAge: age}))
					want(t, s.Create(t.Context(), "ada", cart{Count: 1}), nil)
					var sent sentCommands
					srv.Client().AddHook(&sent)
					reads := effort.Times(600, 2500)
					for range reads {
						time.Sleep(2 * time.Second)
						if c, err := s.Get(t.Context(), "ada"); c.Count != 1 || err != nil {
							t.Fatalf("got %+v, %v", c, err)
						}
					}
					renewals := sent.of("pexpire")
					if age > 0 { // a script reads and renews
						renewals = sent.of("evalsha")
					}
					if most := 12 * reads / 1000; renewals > most && (local || age == 0) || renewals == 0 {
						t.Errorf("%d renewals in %d reads", renewals, reads)
					}
					synctest.Wait()
				})
			})
		}
	}
}

func TestALostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ctx := t.Context()
		for _, way := range ways {
			s := mayfly.Must(sliding.New(namespace(srv.Client()), way.opt))
			s.Create(ctx, "warm", cart{}) // the scripts are known
			s.Update(ctx, "warm", func(c cart) (cart, error) { return c, nil })
			drop := func(commands ...string) {
				for _, c := range commands {
					srv.DropReply(c)
				}
			}
			command := "set"
			if way.opt.MaxAge > 0 {
				command = "evalsha"
			}
			drop(command)
			if err := s.Create(ctx, "ada", cart{Count: 1}); err != nil { // the repetition recognizes its own work
				t.Errorf("%s: create: %v", way.name, err)
			}
			drop("evalsha")
			c, err := s.Update(ctx, "ada", func(c cart) (cart, error) { c.Count++; return c, nil })
			if c.Count != 2 || err != nil {
				t.Errorf("%s: update: %+v, %v", way.name, c, err)
			}
			if c, err := s.Peek(ctx, "ada"); c.Count != 2 || err != nil {
				t.Errorf("%s: got %+v, %v", way.name, c, err)
			}
			s.Delete(ctx, "ada", "warm")
		}
		ns := namespace(srv.Client())
		ns.Plain = true
		s := mayfly.Must(sliding.New(ns, sliding.Options{}))
		srv.DropReply("set")
		want(t, s.Create(ctx, "ada", cart{}), mayfly.ErrUnknownOutcome) // nothing shows whose value that is
		srv.Refuse(true)
		srv.KillConnections()
		for what, err := range map[string]error{
			"create": s.Create(ctx, "bob", cart{}), "set": s.Set(ctx, "bob", cart{}), "delete": s.Delete(ctx, "bob"),
		} {
			if err == nil || errors.Is(err, mayfly.ErrNotFound) || errors.Is(err, mayfly.ErrExists) {
				t.Errorf("%s without a Redis: %v", what, err)
			}
		}
		if _, err := s.Get(ctx, "bob"); err == nil || errors.Is(err, mayfly.ErrNotFound) {
			t.Errorf("get without a Redis: %v", err)
		}
		time.Sleep(10 * time.Second) // go-redis goes on dialling for callers who left
	})
}
