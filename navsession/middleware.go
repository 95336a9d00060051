package navsession

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/check"
)

// MiddlewareOptions say what a page view is and how many may wait. Every zero is a default that works.
type MiddlewareOptions struct {
	// Bot reports whether no human waits for the answer, so that it is not a page view. guess is what the request suggests: its User-Agent names
	// a crawler, a monitor or a command line tool, or is missing, or a browser fetches the page ahead of time. Nil takes the guess.
	Bot func(r *http.Request, guess bool) bool

	// Asset reports whether the request is for a part of a page, which is not a page view. guess is what the request suggests: the browser says
	// so by Sec-Fetch-Dest; or, without that, the path ends like that of a style sheet, a script, an image, a font, media or data; or the request
	// changes the protocol, as for a websocket. Nil takes the guess.
	Asset func(r *http.Request, guess bool) bool

	// Failure reports whether an answer with this status showed no page. Nil means every status except 200, 206 and 304.
	Failure func(status int) bool

	// Page names the page of a request that was answered. If its Time is zero, it is set to when the request arrived. Nil names the page by
	// its path, without the query, which may be private.
	Page func(*http.Request) Page

	// Queue is how many views may wait to be recorded, at most a million; views beyond that are dropped. Zero is 1024.
	Queue int

	// Timeout is how long one recording may take. Zero is 1 s.
	Timeout time.Duration
}

// Middleware records the page views of handlers in the background. A request never waits for it, and never fails because of it. A view that
// cannot be recorded is lost, and reported to the namespace's observer as an Event of kind [mayfly.KindWrite]: with outcome
// [mayfly.OutcomeDropped] if too many views wait or the Middleware is closed, and [mayfly.OutcomeFailed] if Redis or a function of the
// options failed. The views of one user are recorded in order.
type Middleware[K comparable] struct {
	visits *Visits[K, Page]
	user   func(*http.Request) (K, bool)
	opt    MiddlewareOptions
	seed   maphash.Seed
	queues [recorders]chan view[K] // all views of a user are in the same queue

	ctx     context.Context // of the recordings
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.RWMutex // guards closed: held while sending, so that nothing is sent after Close
	closed bool

	gaveUp atomic.Bool // Close gave up on something
}

const (
	recorders = 4
	maxQueue  = 1_000_000
)

type view[K comparable] struct {
	user K
	page Page
}

// NewMiddleware returns a Middleware that records in visits. user returns whose view a request is, or false if it should not be recorded.
// user is called after the handler, on its goroutine. The Middleware runs four goroutines until Close.
func NewMiddleware[K comparable](visits *Visits[K, Page], user func(*http.Request) (K, bool), o MiddlewareOptions) (*Middleware[K], error) {
	c := check.In("navsession: ")
	c.Refuse(visits == nil, "NewMiddleware needs visits to record in, got nil")
	c.Refuse(user == nil, "NewMiddleware needs a function that tells the user of a request, got nil")
	c.Refuse(o.Queue < 0, "MiddlewareOptions.Queue must not be negative, got %d", o.Queue)
	c.Refuse(o.Queue > maxQueue, "MiddlewareOptions.Queue must be at most %d, got %d", maxQueue, o.Queue)
	c.Refuse(o.Timeout < 0, "MiddlewareOptions.Timeout must not be negative, got %v", o.Timeout)
	if err := c.Err(); err != nil {
		return nil, err
	}
	m := &Middleware[K]{visits: visits, user: user, opt: o.withDefaults(), seed: maphash.MakeSeed()}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	for i := range m.queues {
		m.queues[i] = make(chan view[K], max(1, m.opt.Queue/recorders))
		m.running.Go(func() { m.record(m.queues[i]) })
	}
	return m, nil
}

func (o MiddlewareOptions) withDefaults() MiddlewareOptions {
	guessed := func(_ *http.Request, guess bool) bool { return guess }
	if o.Bot == nil {
		o.Bot = guessed
	}
	if o.Asset == nil {
		o.Asset = guessed
	}
	if o.Failure == nil {
		o.Failure = isFailure
	}
	if o.Page == nil {
		o.Page = pathOf
	}
	o.Queue, o.Timeout = cmp.Or(o.Queue, 1024), cmp.Or(o.Timeout, time.Second)
	return o
}

// Wrap returns a handler that calls next and records its page views. It panics if next is nil, as [http.ServeMux.Handle] does.
func (m *Middleware[K]) Wrap(next http.Handler) http.Handler {
	if f, ok := next.(http.HandlerFunc); next == nil || ok && f == nil {
		panic("navsession: Wrap got a nil handler: give it the one whose page views are to be recorded")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !m.candidate(r) {
			next.ServeHTTP(w, r)
			return
		}
		came, status := time.Now(), &statusWriter{ResponseWriter: w, ctx: r.Context()}
		next.ServeHTTP(status, r)
		m.saw(r, came, cmp.Or(status.status, http.StatusOK))
	})
}

// candidate reports whether the request could be a page view.
func (m *Middleware[K]) candidate(r *http.Request) (is bool) {
	defer m.recovers(r)
	return !m.opt.Bot(r, isBot(r)) && !m.opt.Asset(r, isAsset(r))
}

// saw queues the view of an answered request, if it is one.
func (m *Middleware[K]) saw(r *http.Request, came time.Time, status int) {
	defer m.recovers(r)
	if m.opt.Failure(status) {
		return
	}
	user, known := m.user(r)
	if !known {
		return
	}
	page := m.opt.Page(r)
	if page.Time.IsZero() {
		page.Time = came
	}
	if !m.enqueue(view[K]{user, page}) {
		m.lost(r.Context(), mayfly.OutcomeDropped, nil)
	}
}

func (m *Middleware[K]) enqueue(v view[K]) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return false
	}
	select {
	case m.queues[maphash.Comparable(m.seed, v.user)%recorders] <- v:
		return true
	default:
		return false
	}
}

// recovers keeps the panic of a function of the options away from the request.
func (m *Middleware[K]) recovers(r *http.Request) {
	if p := recover(); p != nil {
		m.lost(r.Context(), mayfly.OutcomeFailed, fmt.Errorf("navsession: a function of the Middleware panicked: %v", p))
	}
}

func (m *Middleware[K]) lost(ctx context.Context, how mayfly.Outcome, err error) {
	if o := m.visits.room.Observer; o != nil {
		o.Observe(ctx, mayfly.Event{Kind: mayfly.KindWrite, Outcome: how, Namespace: m.visits.room.Name, Err: err})
	}
}

// record records the views of a queue until it is closed and empty. Once Close has given up, it drops the rest.
func (m *Middleware[K]) record(queue <-chan view[K]) {
	for v := range queue {
		if m.ctx.Err() != nil {
			m.gaveUp.Store(true)
			m.lost(m.ctx, mayfly.OutcomeDropped, nil)
			continue
		}
		ctx, cancel := context.WithTimeout(m.ctx, m.opt.Timeout)
		if err := m.visits.Record(ctx, v.user, v.page); err != nil && m.ctx.Err() != nil { // Record reports the Event
			m.gaveUp.Store(true)
		}
		cancel()
	}
}

// Close records the waiting views until ctx ends. It drops those left then, which is an error. It returns when the goroutines have ended, or
// when ctx ends; a recording that is still running then stops in the time that its client gives it. Requests are still served, but not
// recorded. It is safe to call Close again.
func (m *Middleware[K]) Close(ctx context.Context) error {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		for _, queue := range m.queues {
			close(queue)
		}
	}
	m.mu.Unlock()
	ended := make(chan struct{})
	go func() { m.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		m.cancel()
		for _, queue := range m.queues {
			for range queue {
				m.gaveUp.Store(true)
				m.lost(m.ctx, mayfly.OutcomeDropped, nil)
			}
		}
		select {
		case <-ended:
		case <-time.After(closeGrace):
			m.gaveUp.Store(true)
		}
	}
	m.cancel()
	if m.gaveUp.Load() {
		return errors.New("navsession: Close was given too little time: page views were dropped")
	}
	return nil
}

// closeGrace is how long a cancelled recording may take to return, if its client heeds contexts.
const closeGrace = 20 * time.Millisecond
