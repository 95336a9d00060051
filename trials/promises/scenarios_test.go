package promises

import (
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/proxy"
)

// The first sending of a write is held back while its client gives up, and whatever the client and the library do then is let through.
// If the call returned nil and others wrote after it, the late copy changes nothing.
func TestALateCopyAfterNil(t *testing.T) {
	each(t, true, rows(), func(t *testing.T, c client, r row, w world, p *proxy.Proxy) {
		call := r.opened(w, p)
		held := p.Hold(writes, call.about).Skip(r.skip)
		returned := in(call.do)
		if !came(t, c, held, returned) {
			return
		}
		if c.cut {
			held.Cut()
		}
		err := <-returned
		if err != nil { // the other tests are about that
			held.Release()
			<-held.Done()
			return
		}
		call.check(t, w, held, "after nil")
		r.ends(t, w)
	})
}

// Every sending of a write is held back and given up on, until the call ends. What it returns is not nil, unless it could do without,
// and does not pretend to know; of all the copies one at most takes effect, whenever they come.
func TestLateCopiesAfterAnError(t *testing.T) {
	each(t, false, rows(), func(t *testing.T, c client, r row, w world, p *proxy.Proxy) {
		call := r.opened(w, p)
		next := p.Hold(writes, call.about).Skip(r.skip)
		returned := in(call.do)
		var copies []*proxy.Fault
		var err error
		for ended := false; !ended; {
			select {
			case <-next.Arrived():
				copies = append(copies, next)
				late := next
				next = p.Hold(writes, call.about)
				if c.cut {
					late.Cut()
				}
			case err = <-returned:
				next.Release()
				ended = true
			case <-time.After(patience):
				t.Fatal("it does not return")
			}
		}
		if len(copies) == 0 {
			if err == nil || c.cut {
				t.Errorf("the call returned %v, and has not written what was to be held", err)
			}
			return
		}
		r.knows(t, c, err)
		effects := 0
		for _, late := range copies {
			if call.later != nil {
				call.later()
			}
			if changed := call.release(w, late); changed != "" {
				if effects++; effects > 1 || err == nil {
					t.Errorf("the call returned %v; its copies, of %d, took effect %d times: %q, answered %q. %s", err, len(copies), effects, late.Words(), late.Reply(), changed)
				}
			}
		}
		r.ends(t, w)
	})
}

// The server executes a write and its reply is lost. The call returns nil only if it was done, once; ErrUnknownOutcome where that is
// promised; and the write is done twice in no case.
func TestALostReply(t *testing.T) {
	each(t, false, rows(), func(t *testing.T, c client, r row, w world, p *proxy.Proxy) {
		call := r.opened(w, p)
		lost := c.lose(p, writes, call.about).Skip(r.skip)
		returned := in(call.do)
		if !came(t, c, lost, returned) {
			return
		}
		err := <-returned
		r.knows(t, c, err)
		if call.done == nil {
			return
		}
		if n := call.done(); n > 1 || n != 1 && err == nil {
			t.Errorf("the call returned %v, and was done %d times", err, n)
		}
		r.ends(t, w)
	})
}

// The server executes a write, its reply is lost, and others write before the repetition comes, if there is one: it changes nothing.
func TestARepetition(t *testing.T) {
	each(t, false, rows(), func(t *testing.T, c client, r row, w world, p *proxy.Proxy) {
		call := r.opened(w, p)
		lost := c.lose(p, writes, call.about).Skip(r.skip)
		again := lost.HoldAgain()
		returned := in(call.do)
		if !came(t, c, lost, returned) {
			return
		}
		select {
		case <-again.Arrived():
			next := p.Hold(writes, call.about) // so that only the repetition changes anything
			call.check(t, w, again, "once more")
			next.Release()
			<-returned
		case <-returned:
			again.Release()
		case <-time.After(patience):
			t.Fatal("it does not return")
		}
		r.ends(t, w)
	})
}

// The first sending of a load's claim is held back while its client gives up, and is sent again. When what was read from the origin is
// to be stored, others commit and delete, which takes the claim away. Then the copy comes, and after it the value: it is not stored.
func TestALateCopyRevivesNoClaim(t *testing.T) {
	claims := slices.DeleteFunc(rows(), func(r row) bool { return !r.claims })
	each(t, true, claims, func(t *testing.T, c client, r row, w world, p *proxy.Proxy) {
		call := r.opened(w, p)
		held := p.Hold(writes, call.about).Skip(r.skip)
		again := held.HoldAgain()
		returned := in(call.do)
		if !came(t, c, held, returned) {
			return
		}
		if c.cut {
			held.Cut()
		}
		select {
		case <-again.Arrived():
		case <-returned: // it stores nothing
			return
		case <-time.After(patience):
			t.Fatal("it does not return")
		}
		fill := p.Hold(writes, call.about)
		again.Release()
		select {
		case <-fill.Arrived():
		case <-returned:
			return
		case <-time.After(patience):
			t.Fatal("it neither stores nor returns")
		}
		call.later()
		call.release(w, held)
		fill.Release()
		<-returned
		if broken := call.promise(); broken != "" {
			t.Errorf("a claim that came again after others took it away, %q, was answered %q: %s", held.Words(), held.Reply(), broken)
		}
	})
}

func (r row) opened(w world, p *proxy.Proxy) call {
	c := r.open(w)
	p.ClearLog()
	if c.about == "" {
		c.about = w.prefix
	}
	return c
}

// check has others write, releases a copy, and sees whether what was promised is so.
func (c call) check(t *testing.T, w world, held *proxy.Fault, when string) {
	t.Helper()
	if c.later != nil {
		c.later()
	}
	if broken := c.release(w, held); broken != "" {
		t.Errorf("a copy that came %s, %q, was answered %q: %s", when, held.Words(), held.Reply(), broken)
	}
}

// release has a copy arrive, and returns what that broke.
func (c call) release(w world, held *proxy.Fault) (broken string) {
	w.t.Helper()
	before := w.state()
	held.Release()
	select {
	case <-held.Done():
	case <-time.After(patience):
		w.t.Fatal("what was released is not answered")
	}
	if c.promise != nil {
		return c.promise()
	}
	return changes(before, w.state())
}

// knows fails the test if an error pretends to know what nobody can. A timeout of the client's own may be that of a question.
func (r row) knows(t *testing.T, c client, err error) {
	t.Helper()
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && !c.cut {
		return
	}
	if r.unknown && err != nil && !errors.Is(err, mayfly.ErrUnknownOutcome) {
		t.Errorf("the reply was lost, and the call says: %v", err)
	}
}

// ends fails the test if there is a key without an end.
func (r row) ends(t *testing.T, w world) {
	t.Helper()
	if keys := w.endless(); len(keys) > 0 && !r.endless {
		t.Errorf("it never ends: %q", keys)
	}
}

// in runs a call elsewhere.
func in(do func() error) <-chan error {
	returned := make(chan error, 1)
	go func() { returned <- do() }()
	return returned
}

// came waits for a request, and reports whether it came before the call returned. A client that gives up by its own timeout may do so
// before that, on a machine that is busy.
func came(t *testing.T, c client, f *proxy.Fault, returned <-chan error) bool {
	t.Helper()
	select {
	case <-f.Arrived():
		return true
	case err := <-returned:
		if err != nil && !c.cut {
			break
		}
		t.Errorf("the call returned %v, and has not written what was to be held", err)
	case <-time.After(patience):
		t.Error("the call neither writes nor returns")
	}
	return false
}
