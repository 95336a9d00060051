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

// follower carries out what a master sends on one connection.
type follower struct {
	link    *Link
	m       *engine.Master
	w       *wire
	parser  resp.Parser
	session *engine.Session
	unit    []byte // the bytes of an incomplete unit
	inside  bool   // in a transaction
	done    atomic.Int64
	asked   bool // the master has asked for our offset
}

// turnUnits is how many commands are carried out before other clients get a turn.
const turnUnits = 256

// obey carries out what the master sends until the connection breaks, and returns the reason.
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

// acknowledge tells the master our offset at once, since the master may wait for that, and then every second.
func (f *follower) acknowledge(ctx context.Context) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		if f.tell() != nil {
			return // the reader gets an error too
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

// turn carries out all commands that have arrived.
func (f *follower) turn() (err error) {
	for more := true; more; {
		idle := true
		gone := f.link.with(f.m, func(now int64, e *engine.Engine) {
			f.m.Heard = now / 1000
			if why := e.RefusesWrites(); why != "" {
				err = fmt.Errorf("the master's writes cannot be kept: %s", why)
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
		case !idle: // a script is in progress
			time.Sleep(time.Millisecond)
		default:
			f.done.Store(f.m.Offset)
		}
	}
	return nil
}

// some carries out a number of commands, and reports whether there may be more.
func (f *follower) some(now int64, e *engine.Engine) (more bool, err error) {
	for range turnUnits {
		args, err := f.parser.Next()
		if err != nil {
			return false, fmt.Errorf("the master sent something that is not a command: %w", err)
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
			return false, refused{fmt.Errorf("the master sent a command that is not supported: %.40q with %d arguments", name, len(args)-1)}
		default:
			if err := e.Obey(now, f.session, args); err != nil {
				return false, refused{fmt.Errorf("the master's command %.40s failed here: %w", name, err)}
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
