package fieldttl_test

import (
	"testing"
	"testing/synctest"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/late"
	"github.com/mayflycache/mayfly/redistest"
)

// writes are all of them, with what begins their request, and a command that can be refused.
var writes = []struct {
	name, held, refused string
	do                  func(t *testing.T, s *fieldttl.Store[string, session]) error
}{
	{"Set", "multi", "pexpire", func(t *testing.T, s *fieldttl.Store[string, session]) error { return s.Set(t.Context(), "a", ada) }},
	{"SetFields", "multi", "pexpire", func(t *testing.T, s *fieldttl.Store[string, session]) error {
		return s.SetFields(t.Context(), "a", ada, "ip")
	}},
	{"Update", "evalsha", "evalsha", func(t *testing.T, s *fieldttl.Store[string, session]) error {
		_, err := s.Update(t.Context(), "a", func(e fieldttl.Entry[session]) (session, error) { e.Value.IP += "1"; return e.Value, nil }, "ip")
		return err
	}},
	{"TouchFields", "multi", "hpexpire", func(t *testing.T, s *fieldttl.Store[string, session]) error {
		return s.TouchFields(t.Context(), "a", "ip")
	}},
	{"GetAndTouchFields", "multi", "hmget", func(t *testing.T, s *fieldttl.Store[string, session]) error {
		_, err := s.GetAndTouchFields(t.Context(), "a", "ip")
		return err
	}},
	{"PersistFields", "multi", "hpersist", func(t *testing.T, s *fieldttl.Store[string, session]) error {
		return s.PersistFields(t.Context(), "a", "ip")
	}},
	{"Touch", "multi", "pexpire", func(t *testing.T, s *fieldttl.Store[string, session]) error { return s.Touch(t.Context(), "a") }},
	{"DeleteFields", "hdel", "hdel", func(t *testing.T, s *fieldttl.Store[string, session]) error {
		return s.DeleteFields(t.Context(), "a", "ip")
	}},
	{"Delete", "eval", "eval", func(t *testing.T, s *fieldttl.Store[string, session]) error { return s.Delete(t.Context(), "a") }},
}

// No write is sent twice: one whose request is lost says that nobody knows, and one that returned nil leaves nothing behind. What the
// server says that it did not execute is sent again.
func TestALateCopy(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, w := range writes {
			t.Run(w.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Start(t)
					conns, rdb := late.Client(t, srv)
					s, others := store[session](t, opened{rdb, apart}), store[session](t, opened{srv.Client(), apart})
					for range 2 { // once for the script
						expect.OK(t, others.Set(t.Context(), "a", ada))
						expect.OK(t, writes[2].do(t, s))
					}
					conns.Hold(w.held)
					err := w.do(t, s)
					expect.OK(t, others.Set(t.Context(), "a", session{UserID: 1002}))
					conns.Check(t, srv.Dump, err, mayfly.ErrUnknownOutcome)
					expect.OK(t, others.Set(t.Context(), "a", ada))
					srv.FailNext(w.refused, "READONLY You can't write against a read only replica.")
					srv.FailNext(w.refused, "CLUSTERDOWN The cluster is down")
					if err := w.do(t, s); err != nil {
						t.Errorf("after refusals: %v", err)
					}
				})
			})
		}
	}
}
