// Package replica keeps an engine in step with a master, a real Redis or another engine, as Redis's replicas do: it fetches all data once,
// and then carries out what the master does, with the master's own deadlines.
//
//	link, err := replica.New(replica.Options{Do: s.Do, Journal: j}) // REPLICAOF works from now on
//	link.Follow("redis.internal", 6379)
//	err = link.InStep(ctx)
//	err = link.Promote()
//	link.Close()
//
// # How a synchronisation goes
//
//	link                                        master
//	PING, AUTH, REPLCONF, PSYNC id offset   ->
//	                                        <-  CONTINUE, and what was missed; or FULLRESYNC, and an RDB file
//	the file is read into another engine, while the old data are served
//	a journal writes it to disk
//	between two commands the new data replace the old
//	REPLCONF ACK offset, once a second      ->
//	                                        <-  effects, which are obeyed unit by unit
//
// A file that cannot be read, because it holds streams or a module's data, changes nothing: the old data stay, and Status says why.
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
	Do      func(func(now int64, e *engine.Engine)) // runs a function while no command runs: the server's Do
	Journal *journal.Journal                        // the engine's journal; nil: none

	Dial func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP

	Silence time.Duration // after this long without word from the master the link is made anew; 0: a minute, as Redis's repl-timeout
	Retry   time.Duration // pause between two attempts; 0: a second. After an error that is unlikely to mend itself it grows up to 32-fold.
}

// Link carries out in an engine what its master does. Its methods are safe for concurrent use, but must not be called inside Do.
type Link struct {
	o    Options
	runs sync.WaitGroup

	mu      sync.Mutex         // guards the fields below; Do is never called while it is held
	master  *engine.Master     // nil: the engine follows no master
	stop    context.CancelFunc // ends the run for master
	state   Status
	changed chan struct{} // closed when state changes
	closed  bool
}

// Status describes a replica.
type Status struct {
	Of      string    // host:port of the master; empty: the engine follows none
	InStep  bool      // the link is up, and the master's effects are carried out as they come
	Synced  bool      // it has been in step at least once, so it can be promoted
	Offset  int64     // its position in the master's stream
	Heard   time.Time // when the master was last heard from; zero: never
	Problem error     // why there is no link, or why the last one ended; nil: there is one, or it is being made
}

// New returns a Link that follows no master yet. REPLICAOF commands make it follow one.
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

// Promote makes the engine a master. When it returns, no more of the old master's effects are carried out, and dead keys expire. It is an
// error if the engine followed no master.
func (l *Link) Promote() (err error) {
	l.o.Do(func(_ int64, e *engine.Engine) {
		if e.Master() == nil {
			err = errors.New("the engine follows no master: it is one itself")
			return
		}
		e.Follow(nil)
	})
	return err
}

// follow is called by the engine during a command or Do.
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

// note changes the status while m is still followed.
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

// Status returns the replica's status.
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

// InStep waits until the replica has all data of its master and receives its further effects. If ctx ends first, the error says what stands
// in the way.
func (l *Link) InStep(ctx context.Context) error {
	for {
		l.mu.Lock()
		s, changed := l.state, l.changed
		l.mu.Unlock()
		switch {
		case s.Of == "":
			return errors.New("the engine follows no master")
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

// Close ends the link. The engine keeps its role: a replica stays one.
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
				m.ID = "" // fetch everything again
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

// refused is an error that another attempt is unlikely to cure: unreadable data, a wrong password, a full disk.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

var errGone = errors.New("replica: the engine follows another master now")

// with calls f with the engine while it still follows m.
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
