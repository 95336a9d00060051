package localsync

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/keyform"
)

const (
	probeName = keyform.Reserved + "probe" // of keys, one per master
	probeTTL  = time.Hour
)

// probe is a key that is written to see whether Redis pushes changes. Writing it changes nothing, and may come late or twice.
//
// Only a probe that Redis acknowledged proves anything. A Redis that refuses writes pushes nothing, but that is no sign that something
// swallows pushes.
type probe struct {
	key      string
	heard    atomic.Int64 // when it was last pushed, unix ms
	accepted atomic.Int64 // when Redis first acknowledged one, unix ms
	refusal  atomic.Pointer[error]
}

// due reports whether a probe should be written: nothing was pushed for some time, or the key could expire before the next probe. The time
// varies at random, so that usually only one of the processes writes it.
func (p *probe) due(now, pushed, silence int64) bool {
	return longAgo(now-pushed, silence/4) || longAgo(now-p.heard.Load(), probeTTL.Milliseconds()/4)
}

func longAgo(ago, most int64) bool { return ago > most+mathrand.Int64N(most) }

// prolong writes the probe. PEXPIRE takes no memory, so a Redis that is full accepts it.
func (p *probe) prolong(ctx context.Context, pipe redis.Pipeliner) *redis.BoolCmd {
	return pipe.PExpire(ctx, p.key, probeTTL)
}

// answered handles the answer to prolong, and creates the key if it does not exist. It returns a refused error if this user may not write
// it.
func (p *probe) answered(ctx context.Context, asker *redis.Client, prolonged *redis.BoolCmd, now func() int64) error {
	ok, err := prolonged.Result()
	if err == nil && !ok || noPermission(err) {
		err = asker.Set(ctx, p.key, "", probeTTL).Err()
	}
	var reply redis.Error
	switch {
	case err == nil:
		p.refusal.Store(nil)
		p.accepted.CompareAndSwap(0, now())
	case noPermission(err):
		return refused{fmt.Errorf("%s: %w", p.key, err)}
	case errors.As(err, &reply):
		p.refusal.Store(&err)
	}
	return nil
}

// reset forgets what was heard and acknowledged.
func (p *probe) reset() {
	p.heard.Store(0)
	p.accepted.Store(0)
	p.refusal.Store(nil)
}

// is reports whether a pushed key is a probe.
func (p *probe) is(key string) bool { return strings.HasPrefix(key, probeName) }

func noPermission(err error) bool { return redis.HasErrorPrefix(err, "NOPERM") }

// unproved is why a link that listens is not trusted: its beats come back, but Redis refuses the probe.
type unproved struct{ error }

func (u unproved) Unwrap() error { return u.error }

// notHeard returns why the link is not trusted, or no longer trusted. It returns nil while that is not known: the next beat decides.
func (s *session) notHeard(now int64) error {
	beat, accepted, refusal := s.echoed.Load(), s.probe.accepted.Load(), s.probe.refusal.Load()
	switch {
	case s.rung != Tracking || now-beat > s.link.local.opt.Silence.Milliseconds():
		return errSilent
	case accepted > 0 && s.pushed.Load() == 0:
		if beat > accepted { // this beat was sent after the probe took effect, and would have arrived after its push
			return refused{errSwallow}
		}
		return nil
	case refusal != nil:
		return unproved{fmt.Errorf("no change is pushed, and redis refuses the probe that would show whether any can be: %w", *refusal)}
	}
	return errSilent
}
