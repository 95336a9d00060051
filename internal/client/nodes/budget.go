package nodes

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/turns"
)

// limits makes contexts that end after a time, like context.WithTimeout, for the path of every read. They take two allocations instead of five,
// whether or not the caller's context can end, and usually touch no timer. Arming a timer for each command wakes a second thread of
// the runtime, which costs more than everything else that a read does beyond go-redis.
type limits struct {
	alarms sync.Pool // of *alarm that belong to no limit
}

// limit is one such context. It ends with its own time, and with the caller's context once somebody waits for that: see Done.
type limit struct {
	context.Context // the caller's
	at              time.Time
	alarm           *alarm

	done  chan struct{}
	ended atomic.Pointer[error] // written once, before done is closed

	mu     sync.Mutex
	asked  bool        // Done was called
	over   bool        // it was given back
	unlink func() bool // detaches it from the caller's context; nil if it was not attached
}

// alarm is a timer and the limit it serves. A timer that is armed stays armed when its limit is given back. Usually it rings before the
// next limit ends, and when it rings too early it is armed for the rest.
type alarm struct {
	mu    sync.Mutex
	of    *limit
	armed bool
	rings time.Time // when it rings, if armed
	timer *time.Timer
}

// begin returns a context based on ctx that ends after the given time. The caller must end it.
func (ls *limits) begin(ctx context.Context, now time.Time, after time.Duration) *limit {
	l := &limit{Context: ctx, at: now.Add(after), done: make(chan struct{})}
	l.alarm, _ = ls.alarms.Get().(*alarm)
	if l.alarm == nil {
		l.alarm = &alarm{}
	}
	l.alarm.set(l, now)
	return l
}

// end gives the context back. Whoever still holds it finds it cancelled.
func (ls *limits) end(l *limit) {
	l.mu.Lock()
	l.over = true
	if l.unlink != nil {
		l.unlink()
	}
	l.mu.Unlock()
	l.alarm.set(nil, time.Time{})
	l.end(&canceled)
	ls.alarms.Put(l.alarm)
}

func (a *alarm) set(l *limit, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of = l; l == nil || a.armed && !l.at.Before(a.rings) {
		return
	}
	a.arm(l.at.Sub(now), l.at)
}

func (a *alarm) arm(d time.Duration, at time.Time) {
	a.armed, a.rings = true, at
	if a.timer == nil {
		a.timer = time.AfterFunc(d, a.ring)
		return
	}
	a.timer.Reset(d)
}

func (a *alarm) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.armed = false
	if a.of == nil {
		return
	}
	if left := time.Until(a.of.at); left > 0 { // it was armed for an earlier limit
		a.arm(left, a.of.at)
		return
	}
	a.of.end(&exceeded)
}

var canceled, exceeded = context.Canceled, context.DeadlineExceeded

func (l *limit) end(err *error) {
	if l.ended.CompareAndSwap(nil, err) {
		close(l.done)
	}
}

// Deadline implements context.Context.
func (l *limit) Deadline() (time.Time, bool) {
	if at, ok := l.Context.Deadline(); ok && at.Before(l.at) {
		return at, true
	}
	return l.at, true
}

// Done implements context.Context with one exception: its first caller learns of the end of the caller's context only if that came before. go-redis
// calls Done once before each command without waiting, and again when it has to wait. Only then is the link to the caller's context worth its five
// allocations. Anything that waits on the first channel nevertheless waits until the limit ends.
func (l *limit) Done() <-chan struct{} {
	l.mu.Lock()
	again := l.asked
	l.asked = true
	l.mu.Unlock()
	if again {
		l.link()
	} else {
		l.Err()
	}
	return l.done
}

// link makes the limit end as soon as the caller's context does.
func (l *limit) link() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlink == nil && !l.over && l.Context.Done() != nil {
		l.unlink = context.AfterFunc(l.Context, l.leave)
	}
}

// Err implements context.Context.
func (l *limit) Err() error {
	if err := l.ended.Load(); err != nil {
		<-l.done // it is being closed
		return *err
	}
	if l.Context.Err() != nil {
		l.leave()
		return l.Err()
	}
	return nil
}

// leave ends the limit as the caller's context ended.
func (l *limit) leave() {
	err := l.Context.Err()
	l.end(&err)
}

// Timeout is how long a question may take by default.
const Timeout = 150 * time.Millisecond

// Warnings returns what is dangerous about rdb's settings, for calls that are given that budget.
func Warnings(rdb redis.UniversalClient, budget time.Duration) (warnings []string) {
	var read, write time.Duration
	respects := false
	switch c := rdb.(type) {
	case *redis.Client:
		read, write, respects = c.Options().ReadTimeout, c.Options().WriteTimeout, c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		read, write, respects = c.Options().ReadTimeout, c.Options().WriteTimeout, c.Options().ContextTimeoutEnabled
	default:
		return []string{"the client is neither a redis.Client nor a redis.ClusterClient: a Redis that hangs costs what its own timeouts allow"}
	}
	switch shorter := min(read, write); {
	case shorter < 0:
		return []string{"the client's ReadTimeout or WriteTimeout turns deadlines off: hooks such as tracing do not run; leave them out, ContextTimeoutEnabled does what they are for"}
	case respects && shorter > 0 && shorter < budget && budget > Timeout: // the default is for calls that also wait for a connection
		return []string{fmt.Sprintf("RedisTimeout is %v, but the client gives up after %v: give it a ReadTimeout and a WriteTimeout that are as long", budget, shorter)}
	}
	return nil
}

// slow returns ErrSlow with the server, the time that it had, and what happened; cause may be nil. A client's own timeouts may be shorter than the budget.
func (n *Node) slow(cause error) error {
	had := n.budget
	if n.pool != nil && n.client == asker(n.pool) {
		if read := n.pool.Options().ReadTimeout; read > 0 {
			had = min(had, read)
		}
	}
	if cause == nil {
		return fmt.Errorf("%w (%s, %v)", ErrSlow, n.name, had)
	}
	return fmt.Errorf("%w (%s, %v): %w", ErrSlow, n.name, had, cause)
}

// noDeadlines reports whether a client sets no deadlines on its connections, not even those of contexts.
func noDeadlines(o *redis.Options) bool { return o.ReadTimeout < 0 || o.WriteTimeout < 0 }

func (ns *Nodes) newNode(client asker) *Node {
	n := &Node{name: "redis", client: client, budget: ns.budget, told: ns.told, wait: ns.wait, waited: ns.waited, start: ns.start, closing: ns.closing}
	if c, ok := client.(*redis.Client); ok {
		o := c.Options()
		n.name, n.pool = o.Addr, c
		if !o.ContextTimeoutEnabled || noDeadlines(o) {
			// The clone uses the same pool but has its own options, so the user's client stays as it is. The clone has no hooks.
			clone := c.WithTimeout(n.budget)
			clone.Options().ContextTimeoutEnabled = true
			n.client = clone
		}
		shared := serverOf(c)
		n.gate, n.clock = shared.gate, &shared.clock
		n.line = turns.NewLine(turns.Options{
			Gate: n.gate, Patience: n.patience(), Send: n.send, Refused: n.refused, Start: ns.start, Closed: errClosed, Waited: n.waited,
		})
	}
	return n
}

// Allowance is a context for requests that share one budget: each may take what earlier ones have left. Waiting for turns is free.
type Allowance struct {
	context.Context
	left  atomic.Int64
	outer *Allowance // of which it is a part; nil: of none
}

// Within returns a context for requests that may take d in total. If ctx is an allowance, what they take is also taken from it.
func Within(ctx context.Context, d time.Duration) *Allowance {
	a := &Allowance{Context: ctx}
	a.left.Store(int64(d))
	a.outer, _ = ctx.Value(allowanceKey{}).(*Allowance)
	return a
}

// Left returns what is left of the budget.
func (a *Allowance) Left() time.Duration {
	left := time.Duration(a.left.Load())
	if a.outer != nil {
		left = min(left, a.outer.Left())
	}
	return left
}

func (a *Allowance) spend(d time.Duration) {
	for ; a != nil; a = a.outer {
		a.left.Add(-int64(d))
	}
}

type allowanceKey struct{}

// Value implements context.Context.
func (a *Allowance) Value(key any) any {
	if key == (allowanceKey{}) {
		return a
	}
	return a.Context.Value(key)
}
