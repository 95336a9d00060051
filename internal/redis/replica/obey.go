package replica

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// follower does what a master says on one connection.
type follower struct {
	link    *Link
	m       *engine.Master
	w       *wire
	parser  resp.Parser
	session *engine.Session
	unit    []byte // the words of what is not complete
	inside  bool   // a transaction
	done    atomic.Int64
	asked   bool // to say how far we are
}

// turnUnits is how many commands are obeyed while nobody else is served.
const turnUnits = 256

// obey does what the master says, until the connection breaks, which is the error.
func (l *Link) obey(ctx context.Context, m *engine.Master, w *wire) error {
	f := &follower{link: l, m: m, w: w}
	err := l.with(m, func(now int64, e *engine.Engine) {
		m.State = engine.LinkInOrder
		m.Heard = now / 1000
		f.session = e.NewSession(engine.SessionOptions{Trusted: true, Obeys: true})
		e.Obey(now, f.session, [][]byte{[]byte("SELECT"), []byte(strconv.Itoa(m.DB))})
		f.done.Store(m.Offset)
	})
	if err != nil {
		return err
	}
	defer l.o.Do(func(_ int64, e *engine.Engine) { e.Drop(f.session) })
	l.note(m, func(s *Status) { s.InStep, s.Synced, s.Problem = true, true, nil })
	ctx, stop := context.WithCancel(ctx)
	acks := make(chan struct{})
	go func() {
		defer close(acks)
		f.acknowledge(ctx)
	}()
	defer func() { stop(); <-acks }()
	for {
		if err := f.turn(); err != nil {
			return err
		}
		if f.asked {
			f.asked = false
			if err := f.tell(); err != nil {
				return lost(err)
			}
		}
		if _, err := f.parser.Fill(w.in); err != nil {
			return lost(err)
		}
	}
}

// acknowledge tells the master once a second how far we are, at once first: a master may wait for that.
func (f *follower) acknowledge(ctx context.Context) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		if f.tell() != nil {
			return // the reader learns of it
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

func (f *follower) tell() error {
	return f.w.command("REPLCONF", "ACK", strconv.FormatInt(f.done.Load(), 10))
}

// turn obeys all commands that have arrived.
func (f *follower) turn() (err error) {
	for more := true; more; {
		idle := true
		gone := f.link.with(f.m, func(now int64, e *engine.Engine) {
			f.m.Heard = now / 1000
			if why := e.RefusesWrites(); why != "" {
				err = fmt.Errorf("what it does cannot be kept: %s", why)
			} else if idle = e.Idle(); idle {
				more, err = f.some(now, e)
				f.m.DB = f.session.DB()
			}
		})
		switch {
		case gone != nil:
			return gone
		case err != nil:
			return err
		case !idle: // a script has the engine
			time.Sleep(time.Millisecond)
		default:
			f.done.Store(f.m.Offset)
		}
	}
	return nil
}

// some obeys some commands, and reports whether there may be more.
func (f *follower) some(now int64, e *engine.Engine) (more bool, err error) {
	for range turnUnits {
		args, err := f.parser.Next()
		if err != nil {
			return false, fmt.Errorf("it sent what is no command: %w", err)
		}
		if args == nil {
			return false, nil
		}
		name := string(args[0])
		switch {
		case is(name, "REPLCONF"):
			f.asked = f.asked || len(args) > 1 && is(string(args[1]), "GETACK")
		case is(name, "PING"):
		case !engine.IsEffect(args):
			return false, refused{fmt.Errorf("what it did is not known here: %.40q with %d arguments", name, len(args)-1)}
		default:
			if err := e.Obey(now, f.session, args); err != nil {
				return false, refused{fmt.Errorf("what it did cannot be done here: %.40s: %w", name, err)}
			}
			f.inside = (f.inside || is(name, "MULTI")) && !is(name, "EXEC")
		}
		if f.unit = append(f.unit, f.parser.Raw()...); !f.inside {
			e.Advance(f.unit)
			f.unit = f.unit[:0]
		}
	}
	return true, nil
}

// is reports whether a word is this one, given in upper case.
func is(word, upper string) bool {
	if len(word) != len(upper) {
		return false
	}
	for i := range len(word) {
		if word[i]&^0x20 != upper[i] {
			return false
		}
	}
	return true
}
