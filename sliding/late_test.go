package sliding_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/late"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

type store = *sliding.Store[string, cart]

// lateWrites are writes whose first sending arrives late, each with another process's change that it would undo.
var lateWrites = []struct {
	name, before, held string
	mode               string // with a MaxAge this is held instead: the script's mode
	write, others      func(t *testing.T, s store) error
}{
	{"Create, Delete", "", "set", "begin", createAda, deleteAda},
	{"Create, Delete, Create", "", "set", "begin", createAda, func(t *testing.T, s store) error {
		return errors.Join(deleteAda(t, s), createAda(t, s))
	}},
	{"Set, Delete", "ada", "set", "keep", setAda, deleteAda},
	{"Set, Update", "ada", "set", "keep", setAda, updateAda},
	{"Set, Set", "", "set", "keep", setAda, setAda},
	{"Update, Delete", "ada", "evalsha", "swap", updateAda, deleteAda},
	{"Update, Update", "ada", "evalsha", "swap", updateAda, updateAda},
	{"Update, Set", "ada", "evalsha", "swap", updateAda, setAda},
	{"Delete, Create", "ada", "unlink", "unlink", deleteAda, func(t *testing.T, s store) error {
		deleteAda(t, s) // there if the first was not done
		return createAda(t, s)
	}},
	{"Delete, Set", "ada", "unlink", "unlink", deleteAda, setAda},
	{"Rotate, Delete: the new one", "ada", "set", "carry", rotateAda, deleteBob},
	{"Rotate, Create: the old one", "ada", "evalsha", "evalsha", rotateAda, func(t *testing.T, s store) error {
		deleteAda(t, s)
		return createAda(t, s)
	}},
}

func createAda(t *testing.T, s store) error { return s.Create(t.Context(), "ada", cart{Count: 1}) }
func deleteAda(t *testing.T, s store) error { return s.Delete(t.Context(), "ada") }
func deleteBob(t *testing.T, s store) error { return s.Delete(t.Context(), "bob") }
func rotateAda(t *testing.T, s store) error { return s.Rotate(t.Context(), "ada", "bob") }
func setAda(t *testing.T, s store) error    { return s.Set(t.Context(), "ada", cart{Count: 7}) }
func updateAda(t *testing.T, s store) error {
	_, err := s.Update(t.Context(), "ada", func(c cart) (cart, error) { c.Count++; return c, nil })
	return err
}

// A write that returned nil leaves nothing behind: a sending that its client gave up arrives after others have written, and changes nothing. A
// write with ErrUnknownOutcome may still change something.
func TestALateCopyOfAWriteThatReturnedNil(t *testing.T) {
	for _, way := range ways {
		for _, plain := range []bool{false, true} {
			if plain && way.opt.MaxAge > 0 {
				continue
			}
			for _, w := range lateWrites {
				t.Run(fmt.Sprintf("%s, plain %v, %s", way.name, plain, w.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := redistest.Start(t)
						conns, rdb := late.Client(t, srv)
						ns := namespace(rdb)
						ns.Plain = plain
						s := mayfly.Must(sliding.New(ns, way.opt))
						ns.Redis = srv.Client()
						others := mayfly.Must(sliding.New(ns, way.opt))
						warm(t, others)
						if w.before != "" {
							want(t, others.Create(t.Context(), w.before, cart{}), nil)
						}
						held := w.held
						if way.opt.MaxAge > 0 {
							held = w.mode
						}
						conns.Hold(held)
						err := w.write(t, s)
						want(t, w.others(t, others), nil)
						conns.Check(t, srv.Dump, err, mayfly.ErrUnknownOutcome)
					})
				})
			}
		}
	}
}

// warm makes the server know the scripts, so that none is sent a second time because it is unknown.
func warm(t *testing.T, s store) {
	t.Helper()
	want(t, createAda(t, s), nil)
	want(t, updateAda(t, s), nil)
	want(t, rotateAda(t, s), nil)
	want(t, deleteBob(t, s), nil)
}

// The same on a cluster, whose client repeats in its own way.
func TestALateCopyInACluster(t *testing.T) {
	for _, w := range lateWrites {
		t.Run(w.name, func(t *testing.T) {
			cluster := redistest.StartCluster(t, 3)
			o := cluster.Client().Options()
			conns := late.New(o.Dialer)
			slow := *o
			slow.Dialer = conns.Dial
			rdb := redis.NewClusterClient(&slow)
			defer rdb.Close()
			s := mayfly.Must(sliding.New(namespace(rdb), sliding.Options{}))
			others := mayfly.Must(sliding.New(namespace(cluster.Client()), sliding.Options{}))
			warm(t, others)
			if w.before != "" {
				want(t, others.Create(t.Context(), w.before, cart{}), nil)
			}
			conns.Hold(w.held)
			err := w.write(t, s)
			want(t, w.others(t, others), nil)
			dump := func() (all string) {
				for _, node := range cluster.Nodes() {
					all += node.Dump()
				}
				return all
			}
			conns.Check(t, dump, err, mayfly.ErrUnknownOutcome)
		})
	}
}

type aWrite struct {
	name, command string
	write         func(t *testing.T, s store) error
	lost          error // if the reply is
}

// aLife is a series of writes that leave nothing.
func aLife(o sliding.Options) []aWrite {
	set := "set"
	if o.MaxAge > 0 {
		set = "evalsha"
	}
	return []aWrite{
		{"Create", set, createAda, nil},
		{"Set", set, setAda, nil},
		{"Update", "evalsha", updateAda, nil},
		{"Rotate", set, rotateAda, nil},
		{"Delete", "unlink", deleteBob, mayfly.ErrUnknownOutcome},
	}
}

// A write that was executed and whose reply was lost recognizes its own work if the value has an id. A Delete leaves nothing to recognize.
func TestAWriteFindsItsOwnWork(t *testing.T) {
	inTime(t, func(t *testing.T, s store, o sliding.Options, srv *redistest.Server) {
		warm(t, s)
		for _, w := range aLife(o) {
			srv.DropReply(w.command)
			if err := w.write(t, s); !errors.Is(err, w.lost) {
				t.Errorf("%s: %v", w.name, err)
			}
		}
		if left := srv.Keys(); len(left) != 0 {
			t.Errorf("%v are left", left)
		}
	})
}

// A server's answer that it did not execute a command does not end the write: it is sent again, a few times.
func TestWhatWasNotExecutedIsSentAgain(t *testing.T) {
	inTime(t, func(t *testing.T, s store, o sliding.Options, srv *redistest.Server) {
		warm(t, s)
		for _, reply := range []string{"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
			"CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys request during rehashing of slot", "NOREPLICAS Not enough good replicas to write."} {
			for _, w := range aLife(o) {
				srv.FailNext(w.command, reply)
				srv.FailNext(w.command, reply)
				if err := w.write(t, s); err != nil {
					t.Errorf("%s: %.8s: %v", w.name, reply, err)
				}
			}
		}
		for range 100 {
			srv.FailNext("unlink", "LOADING for longer than a call waits")
		}
		if err := deleteBob(t, s); err == nil || errors.Is(err, mayfly.ErrUnknownOutcome) {
			t.Errorf("%v", err)
		}
	})
}

// Two Rotates of one value to the same key are two writes: one of them finds that the key is taken, and the value stays.
func TestTwoRotatesLoseNothing(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			var second error
			duringRotateOnce(t, way.opt, func(others store) error {
				second = others.Rotate(t.Context(), "old", "new")
				return nil
			}, func(others store, first error) {
				if (first == nil) == (second == nil) {
					t.Errorf("one says %v, the other %v", first, second)
				}
				if c, err := others.Peek(t.Context(), "new"); c.Count != 1 || err != nil {
					t.Errorf("the value is %+v, %v", c, err)
				}
			})
		})
	}
}

// A renewal may be repeated. One that arrives late gives the existing value its TTL once more, never beyond its age, and creates nothing.
func TestALateRenewal(t *testing.T) {
	for _, way := range ways {
		for name, renew := range map[string]func(t *testing.T, s store) error{
			"Get":   func(t *testing.T, s store) error { _, err := s.Get(t.Context(), "ada"); return err },
			"Touch": func(t *testing.T, s store) error { return s.Touch(t.Context(), "ada") },
		} {
			for _, there := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %s, there %v", way.name, name, there), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := redistest.Start(t)
						conns, rdb := late.Client(t, srv)
						o := way.opt
						if o.MaxAge > 0 {
							o.MaxAge = 2 * idle
						}
						s := mayfly.Must(sliding.New(namespace(rdb), o))
						others := mayfly.Must(sliding.New(namespace(srv.Client()), o))
						warm(t, others)
						want(t, createAda(t, others), nil)
						want(t, renew(t, others), nil) // the script is known
						time.Sleep(idle * 2 / 3)
						held := "pexpire"
						switch {
						case o.MaxAge > 0, name == "Touch":
							held = "evalsha"
						case o.Atomic && name == "Get":
							held = "getex"
						}
						conns.Hold(held)
						want(t, renew(t, s), nil)
						time.Sleep(idle * 2 / 3)
						if !there {
							want(t, deleteAda(t, others), nil)
						}
						conns.Deliver(t)
						left, err := others.TTL(t.Context(), "ada")
						switch end := o.MaxAge - 2*(idle*2/3); {
						case !there:
							want(t, err, mayfly.ErrNotFound)
						case o.MaxAge > 0 && (left > end || left < end-time.Second), o.MaxAge == 0 && (left > idle || left < idle-time.Second):
							t.Errorf("it lives for %v", left)
						}
					})
				})
			}
		}
	}
}

// A Delete that learns that the key has moved is also sent once to its new server.
func TestADeleteThatFollowsItsKeyIsSentOnce(t *testing.T) {
	cluster := redistest.StartCluster(t, 2)
	s := mayfly.Must(sliding.New(namespace(cluster.Client()), sliding.Options{RedisTimeout: patient}))
	want(t, s.Create(t.Context(), "ada", cart{}), nil)
	from := cluster.Owner("cart:ada")
	to := cluster.Nodes()[0]
	if to == from {
		to = cluster.Nodes()[1]
	}
	cluster.MoveSlots(0, 16383, to)
	to.DropReply("unlink")
	want(t, s.Delete(t.Context(), "ada"), mayfly.ErrUnknownOutcome)
}
