package localsync

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/push"

	"github.com/mayflycache/mayfly/internal/client/keyform"
)

// Names under the reserved prefix.
const (
	beatName    = keyform.Reserved + "beat:"   // of channels, one per session
	changesName = keyform.Reserved + "changed" // the channel of the rung PubSub
)

// session is one connection that listens.
type session struct {
	link    *link
	rung    Rung
	why     error  // why it is not on a higher rung
	beat    string // its channel for beats
	probe   probe
	begun   int64
	ready   chan struct{} // closed when the server has confirmed the subscription
	failed  chan error    // receives an answer to a beat that ends the session
	beating atomic.Bool

	sent   atomic.Int64 // the latest beat, as sent,
	sentAt atomic.Int64 // and when it was sent: nanoseconds since made
	made   time.Time
	echoed atomic.Int64 // when the latest beat that came back was sent, unix ms
	pushed atomic.Int64 // when anything was last pushed
	over   atomic.Bool  // the trust has run out
}

func newSession(l *link, rung Rung, why error) *session {
	s := &session{link: l, rung: rung, why: why, ready: make(chan struct{}), failed: make(chan error, 1), made: time.Now()}
	s.beat, s.probe.key = beatName+rand.Text(), probeName
	if l.tag != "" {
		s.beat, s.probe.key = beatName+"{"+l.tag+"}:"+rand.Text(), probeName+":{"+l.tag+"}"
	}
	return s
}

// sharded reports whether beats go through the shard alone: on a cluster, PUBLISH would go to every node.
func (s *session) sharded() bool { return s.link.tag != "" && s.rung == Tracking }

func (s *session) run(ctx context.Context) error {
	t := s.link.local
	client := redis.NewClient(s.link.options(s.rung))
	defer client.Close()
	if s.rung == Tracking {
		if err := client.RegisterPushNotificationHandler("invalidate", s, false); err != nil {
			return err
		}
	}
	s.begun = t.clock.Now()
	ps := client.Subscribe(ctx)
	defer ps.Close()
	setup, cancel := context.WithTimeout(ctx, t.opt.Silence)
	defer cancel()
	if err := s.subscribe(setup, ps); err != nil {
		return refusal(err)
	}
	broken := make(chan error, 1)
	t.works.Start(func() { broken <- s.receive(ctx, ps) })
	err := s.watch(ctx, broken)
	ps.Close()
	return err
}

func (s *session) subscribe(ctx context.Context, ps *redis.PubSub) error {
	switch {
	case s.sharded():
		return ps.SSubscribe(ctx, s.beat)
	case s.rung == Tracking:
		return ps.Subscribe(ctx, s.beat)
	}
	return ps.Subscribe(ctx, changesName, s.beat) // confirmed in this order
}

// receive handles what the connection delivers, at once and in order, until it ends.
func (s *session) receive(ctx context.Context, ps *redis.PubSub) error {
	for {
		m, err := ps.Receive(ctx)
		if err != nil {
			return refusal(err)
		}
		switch m := m.(type) {
		case *redis.Subscription:
			switch {
			case strings.HasSuffix(m.Kind, "unsubscribe"): // the slot has left this node
				return fmt.Errorf("%s of %s", m.Kind, m.Channel)
			case m.Channel == s.beat:
				close(s.ready)
			}
		case *redis.Message:
			if m.Channel != s.beat {
				s.link.local.told(m.Payload)
				continue
			}
			if sent, err := strconv.ParseInt(m.Payload, 10, 64); err == nil {
				s.echoed.Store(max(s.echoed.Load(), sent))
				s.extend()
				s.tellLag(sent)
			}
		}
	}
}

// tellLag reports how long a beat took.
func (s *session) tellLag(beat int64) {
	if lag := s.link.local.opt.Lag; lag != nil && beat == s.sent.Load() {
		lag(time.Since(s.made) - time.Duration(s.sentAt.Load()))
	}
}

// HandlePushNotification handles what the server pushes: the keys that have changed, or nil for all of them.
func (s *session) HandlePushNotification(_ context.Context, _ push.NotificationHandlerContext, n []any) error {
	t := s.link.local
	s.pushed.Store(t.clock.Now())
	if len(n) < 2 || n[1] == nil {
		t.drop("")
		return nil
	}
	keys, _ := n[1].([]any)
	for _, k := range keys {
		switch key, ok := k.(string); {
		case ok && s.probe.is(key):
			s.probe.heard.Store(t.clock.Now())
			s.extend()
		case ok:
			t.heard(key)
		}
	}
	return nil
}

// extend extends the trust in the link by what has been heard.
func (s *session) extend() {
	heard := s.echoed.Load()
	if s.rung == Tracking {
		heard = min(heard, s.pushed.Load())
	}
	if heard == 0 {
		return
	}
	if !s.link.trust(s.rung, heard+s.link.local.opt.Silence.Milliseconds(), s.why) {
		s.over.Store(true)
	}
}

// watch sends beats and checks that they come back. It returns when the link is of no more use.
func (s *session) watch(ctx context.Context, broken <-chan error) error {
	t := s.link.local
	tick := time.NewTicker(t.opt.Silence / 4)
	defer tick.Stop()
	climb := time.NewTimer(climbEvery)
	defer climb.Stop()
	ready := s.ready
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-broken:
			return err
		case err := <-s.failed:
			return err
		case <-ready:
			ready = nil
			s.send(ctx)
		case <-climb.C:
			if s.rung < Tracking && s.link.couldTrack(ctx) {
				return errHigher
			}
			climb.Reset(climbEvery)
		case <-tick.C:
			if err := s.silent(); err != nil {
				return err
			}
			if awake, asleep := t.sleepy(); asleep {
				tick.Stop()
				select {
				case <-ctx.Done():
					return ctx.Err()
				case err := <-broken:
					return err
				case <-awake:
				}
				t.settle(nil, func() { s.link.until = 0 })
				s.begun = t.clock.Now()
				s.echoed.Store(0)
				s.pushed.Store(0)
				s.probe.reset()
				tick.Reset(t.opt.Silence / 4)
			}
			if ready == nil {
				s.send(ctx)
			}
		}
	}
}

// silent returns an error if the link has been silent for too long.
func (s *session) silent() error {
	t := s.link.local
	t.mu.Lock()
	until := s.link.until
	t.mu.Unlock()
	now, silence := t.clock.Now(), t.opt.Silence.Milliseconds()
	switch {
	case s.over.Load() || until != 0 && now > until: // changes since then may have been missed
		if why := s.notHeard(now); why != nil {
			return why
		}
		return errSilent
	case until == 0 && now-s.begun > silence:
		why := s.notHeard(now)
		if doubt, ok := why.(unproved); ok {
			s.link.doubt(doubt)
			return nil // a push would end it
		}
		return why
	}
	return nil
}

// send sends a beat, and a probe if one is due.
func (s *session) send(ctx context.Context) {
	if !s.beating.CompareAndSwap(false, true) {
		return
	}
	t := s.link.local
	now := t.clock.Now()
	probe := s.rung == Tracking && s.probe.due(now, s.pushed.Load(), t.opt.Silence.Milliseconds())
	t.works.Start(func() {
		defer s.beating.Store(false)
		ctx, cancel := context.WithTimeout(ctx, t.opt.Silence)
		defer cancel()
		s.sentAt.Store(int64(time.Since(s.made)))
		s.sent.Store(now)
		asker := s.link.asker
		pipe := asker.Pipeline()
		var beat *redis.IntCmd
		if s.sharded() {
			beat = pipe.SPublish(ctx, s.beat, now)
		} else {
			beat = pipe.Publish(ctx, s.beat, now)
		}
		if !probe {
			pipe.Exec(ctx)
			s.fail(s.beatAnswered(beat))
			return
		}
		prolonged := s.probe.prolong(ctx, pipe)
		pipe.Exec(ctx)
		s.fail(s.beatAnswered(beat))
		s.fail(s.probe.answered(ctx, asker, prolonged, t.clock.Now))
	})
}

// beatAnswered returns a refused error if this user may not publish beats.
func (s *session) beatAnswered(beat *redis.IntCmd) error {
	err := refusal(beat.Err())
	if err != nil && s.sharded() && redis.HasErrorPrefix(err, "MOVED") {
		s.link.local.Moved()
	}
	if no := (refused{}); errors.As(err, &no) {
		return fmt.Errorf("%s: %w", beat.Name(), err)
	}
	return nil
}

// fail ends the session for err, unless that is nil.
func (s *session) fail(err error) {
	if err != nil {
		select {
		case s.failed <- err:
		default:
		}
	}
}
