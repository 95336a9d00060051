// Package replica keeps an engine in step with a master, a real Redis or another engine, as Redis's replicas do it: it asks for all data once, and
// then does what the master did, with the master's own deadlines.
//
//	link, err := replica.New(replica.Options{Do: s.Do, Journal: j}) // REPLICAOF works from now on
//	link.Follow("redis.internal", 6379)
//	err = link.InStep(ctx)
//	err = link.Promote()
//	link.Close()
//
// # The way of a synchronisation
//
//	link                                        master
//	PING, AUTH, REPLCONF, PSYNC id offset   ->
//	                                        <-  CONTINUE, and what was missed; or FULLRESYNC, and an RDB file
//	the file is read into another engine, while the old data are served
//	a journal writes it down
//	between two commands the data are exchanged
//	REPLCONF ACK offset, once a second      ->
//	                                        <-  effects, which are obeyed unit by unit
//
// A file that cannot be read, since it holds streams or a module's data, changes nothing: the old data stay, and Status says why.
package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/journal"
)

// Options set up a Link.
type Options struct {
	Do      func(func(now int64, e *engine.Engine)) // runs a function while no command does: the server's
	Journal *journal.Journal                        // of the engine; nil: nothing is kept

	Dial func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP

	Silence time.Duration // after so much of it from the master the link is made anew; 0: a minute, as Redis's repl-timeout
	Retry   time.Duration // between two attempts; 0: a second. After what another attempt hardly mends it grows to 32 times as much.
}

// Link brings an engine what its master says. Its methods are safe for concurrent use, but for none inside of Do.
type Link struct {
	o    Options
	runs sync.WaitGroup

	mu      sync.Mutex         // guards what follows; Do is never called while it is held
	master  *engine.Master     // nil: the engine follows nobody
	stop    context.CancelFunc // ends the run for master
	state   Status
	changed chan struct{} // closed when state changes
	closed  bool
}

// Status is how a replica stands.
type Status struct {
	Of      string    // host:port of the master; empty: it is none, or none any more
	InStep  bool      // the link is up, and what the master sends is done at once
	Synced  bool      // it has been in step at least once: there is something to promote
	Offset  int64     // how far in the master's stream it has come
	Heard   time.Time // when the master was heard last; zero: never
	Problem error     // why there is no link, or why the last one ended; nil: there is one, or it is being made
}

// New returns a Link that follows nobody yet. REPLICAOF commands make it follow.
func New(o Options) (*Link, error) {
	if o.Do == nil {
		return nil, errors.New("replica: Options.Do must run a function with the engine")
	}
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	o.Silence = cmp.Or(o.Silence, time.Minute)
	o.Retry = cmp.Or(o.Retry, time.Second)
	l := &Link{o: o, changed: make(chan struct{})}
	o.Do(func(_ int64, e *engine.Engine) { e.SetUpstream(l.follow) })
	return l, nil
}

// Follow makes the engine a replica of the server at host and port, from now on. It does not wait.
func (l *Link) Follow(host string, port int) {
	l.o.Do(func(now int64, e *engine.Engine) {
		e.Follow(&engine.Master{Host: host, Port: port, State: engine.LinkWaits, Lost: now / 1000})
	})
}

// Promote makes the engine a master. When it returns nothing more of what the master said is done, and what is dead expires. It is an error
// if the engine followed nobody.
func (l *Link) Promote() (err error) {
	l.o.Do(func(_ int64, e *engine.Engine) {
		if e.Master() == nil {
			err = errors.New("it follows nobody: it is a master already")
			return
		}
		e.Follow(nil)
	})
	return err
}

// follow is what the engine calls, in the middle of a command or of Do.
func (l *Link) follow(m *engine.Master) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	l.master = m
	synced := l.state.Synced && m == nil
	l.setLocked(Status{Synced: synced, Offset: l.state.Offset, Heard: l.state.Heard})
	if m == nil || l.closed {
		return
	}
	l.state = Status{Of: net.JoinHostPort(m.Host, strconv.Itoa(m.Port))}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.runs.Go(func() { l.run(ctx, m) })
}

func (l *Link) setLocked(s Status) {
	l.state = s
	close(l.changed)
	l.changed = make(chan struct{})
}

// note changes the status as long as m is followed.
func (l *Link) note(m *engine.Master, change func(s *Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.master != m {
		return
	}
	s := l.state
	change(&s)
	l.setLocked(s)
}

// Status returns how the replica stands.
func (l *Link) Status() Status {
	l.mu.Lock()
	master, s := l.master, l.state
	l.mu.Unlock()
	if master != nil {
		l.o.Do(func(int64, *engine.Engine) {
			if s.Offset = master.Offset; master.Heard > 0 {
				s.Heard = time.UnixMilli(master.Heard)
			}
		})
	}
	return s
}

// InStep waits until the replica has all data of its master and gets what the master does from then on. If ctx ends before that, the
// error says what stands in the way.
func (l *Link) InStep(ctx context.Context) error {
	for {
		l.mu.Lock()
		s, changed := l.state, l.changed
		l.mu.Unlock()
		switch {
		case s.Of == "":
			return errors.New("it follows nobody")
		case s.InStep:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if s.Problem != nil {
				return fmt.Errorf("%w: not in step with %s: %w", ctx.Err(), s.Of, s.Problem)
			}
			return fmt.Errorf("%w: not in step with %s yet", ctx.Err(), s.Of)
		}
	}
}

// Close ends the link. The engine stays what it is: a replica, if it was one.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	l.mu.Unlock()
	l.runs.Wait()
}

// run keeps the link to m up, until ctx ends.
func (l *Link) run(ctx context.Context, m *engine.Master) {
	wait := l.o.Retry
	for {
		began := time.Now()
		err := l.once(ctx, m)
		if ctx.Err() != nil {
			return
		}
		hopeless := errors.As(err, new(refused))
		if !hopeless || time.Since(began) > 32*l.o.Retry {
			wait = l.o.Retry
		}
		l.with(m, func(now int64, e *engine.Engine) {
			if m.State == engine.LinkInOrder {
				m.Lost = now / 1000
			}
			m.State = engine.LinkWaits
			if hopeless {
				m.ID = "" // all of it again
			}
		})
		l.note(m, func(s *Status) { s.InStep, s.Problem = false, err })
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if hopeless {
			wait = min(2*wait, 32*l.o.Retry)
		}
	}
}

// refused is an error that another attempt hardly mends: data that cannot be read, a wrong password, a disk that is full.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

var errGone = errors.New("replica: another master is followed")

// with calls f with the engine as long as that follows m.
func (l *Link) with(m *engine.Master, f func(now int64, e *engine.Engine)) error {
	err := errGone
	l.o.Do(func(now int64, e *engine.Engine) {
		if e.Master() == m {
			err = nil
			f(now, e)
		}
	})
	return err
}
