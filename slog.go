package mayfly

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/client/localsync"
)

// slogEvery is the time over which failures of one kind are summed up in one line.
const slogEvery = time.Second

// Slog returns an Observer that writes Events to l, for people: an outage is a handful of lines, however many calls it fails.
//
//   - The first failure of a namespace and kind is written at level Warn. Later ones are counted, and summed up once a second: how many,
//     and the last of them. (At level Debug each is written too.)
//   - A change of a breaker, or of the local tier's coherence, is written when it happens: at level Info if all is well afterwards,
//     otherwise at Warn. Repetitions, as of a state that flaps, are summed up as failures are.
//   - A [KindWarning] is written once.
//   - Everything else is written at level Debug, including values that were not found. Events that l does not log are not formatted.
//
// A sum is written by a timer up to a second after the last Event, so l may be used that long. Nil is [slog.Default].
func Slog(l *slog.Logger) Observer {
	if l == nil {
		l = slog.Default()
	}
	return &sums{to: l, open: make(map[topic]*sum), warned: make(map[warning]bool)}
}

type sums struct {
	to *slog.Logger

	mu     sync.Mutex // guards what follows
	open   map[topic]*sum
	warned map[warning]bool
}

// topic identifies Events that are summed up together.
type topic struct {
	namespace string // or the prefixes of a local tier
	kind      Kind
	state     Outcome // the new state of a change; empty for failures
}

// sum counts the Events of a topic since its last line.
type sum struct {
	n    int
	last Event
}

type warning struct{ namespace, text string }

// maxWarned bounds the remembered warnings, far above what a program needs; beyond it warnings are repeated.
const maxWarned = 1000

// Observe writes e or counts it.
func (s *sums) Observe(ctx context.Context, e Event) {
	level, about := slogLevel(e)
	if !s.to.Enabled(ctx, level) {
		return
	}
	if level == slog.LevelDebug || !s.counted(e, level, about) {
		s.write(ctx, level, e, 0)
	} else if s.to.Enabled(ctx, slog.LevelDebug) {
		s.write(ctx, slog.LevelDebug, e, 0)
	}
}

// slogLevel returns e's level and the topic it is summed up under.
func slogLevel(e Event) (slog.Level, topic) {
	about := topic{namespace: e.Namespace, kind: e.Kind}
	if e.Kind == KindCoherence {
		about.namespace = e.Key // of several local tiers
	}
	switch {
	case e.Kind == KindBreaker && e.Outcome == OutcomeOK, e.Kind == KindCoherence && e.Outcome == Outcome(localsync.Tracking.String()):
		about.state = e.Outcome
		return slog.LevelInfo, about
	case e.Kind == KindBreaker, e.Kind == KindCoherence:
		about.state = e.Outcome
		return slog.LevelWarn, about
	case e.Kind == KindBackend, e.Kind == KindWarning, e.Err != nil && !errors.Is(e.Err, ErrNotFound):
		return slog.LevelWarn, about
	}
	return slog.LevelDebug, about
}

// counted reports whether e must not be written, as it was counted or is known already.
func (s *sums) counted(e Event, level slog.Level, about topic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == KindWarning && e.Err != nil {
		w := warning{e.Namespace, e.Err.Error()}
		known := s.warned[w]
		if len(s.warned) < maxWarned {
			s.warned[w] = true
		}
		return known
	}
	if open, ok := s.open[about]; ok {
		open.n++
		open.last = e
		return true
	}
	s.open[about] = &sum{}
	time.AfterFunc(slogEvery, func() { s.sumUp(about, level) })
	return false
}

// sumUp writes what was counted of a topic, and once that is nothing the next event of it is written again.
func (s *sums) sumUp(about topic, level slog.Level) {
	s.mu.Lock()
	since := *s.open[about]
	if since.n == 0 {
		delete(s.open, about)
	} else {
		*s.open[about] = sum{}
	}
	s.mu.Unlock()
	if since.n > 0 {
		s.write(context.Background(), level, since.last, since.n)
		time.AfterFunc(slogEvery, func() { s.sumUp(about, level) })
	}
}

// write writes e, as the last of times events if those are summed up.
func (s *sums) write(ctx context.Context, level slog.Level, e Event, times int) {
	attrs := make([]slog.Attr, 0, 8)
	if e.Namespace != "" {
		attrs = append(attrs, slog.String("namespace", e.Namespace))
	}
	attrs = append(attrs, slog.String("outcome", string(e.Outcome)))
	if times > 0 {
		attrs = append(attrs, slog.Int("times", times), slog.Duration("within", slogEvery))
	}
	if e.Key != "" {
		attrs = append(attrs, slog.String("key", e.Key))
	}
	if e.Took != 0 {
		attrs = append(attrs, slog.Duration("took", e.Took))
	}
	if e.N != 0 {
		attrs = append(attrs, slog.Int("n", e.N))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("err", e.Err))
	}
	s.to.LogAttrs(ctx, level, "mayfly: "+e.Kind.String(), attrs...)
}
