package localsync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// link hears what changes on one master, on the best rung that the master allows.
type link struct {
	local *Local
	node  *redis.Client // the master, as the caller's client reaches it
	asker *redis.Client // the same client, with our timeouts and without hooks
	tag   string        // in a cluster: the hash tag of a slot of this master
	stop  context.CancelFunc

	// Guarded by local.mu.
	rung  Rung
	until int64 // trusted up to here, unix ms; 0: not trusted
	why   error // why it is on no higher rung
	tried bool  // at least one attempt to listen has succeeded or ended
}

// addLinkLocked starts listening to a master.
func (t *Local) addLinkLocked(name string, node *redis.Client, tag string) {
	ctx, stop := context.WithCancel(t.ctx)
	l := &link{local: t, node: node, asker: node.WithTimeout(t.opt.Silence / 2), tag: tag, stop: stop}
	t.links[name] = l
	t.works.Start(func() { l.run(ctx) })
}

// Pauses between attempts to listen.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// climbEvery is how often a link on a lower rung tries to climb.
const climbEvery = time.Minute

var (
	errClosed   = errors.New("the local tier is closed")
	errSilent   = errors.New("nothing is heard from redis")
	errSwallow  = errors.New("CLIENT TRACKING is accepted, but no invalidation arrives")
	errHigher   = errors.New("tracking is allowed now")
	errNotHeard = errors.New("neither CLIENT TRACKING nor SUBSCRIBE is allowed")
)

// refused is the answer of a server that will not do what a rung needs.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// run listens until ctx ends. Each attempt starts on the top rung and goes down a rung when the server refuses.
func (l *link) run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		var reasons error
		for rung := Tracking; rung > Off; rung-- {
			begun := time.Now()
			err := l.listen(ctx, rung, reasons)
			if time.Since(begun) > lastPause {
				pause = firstPause
			}
			var no refused
			if !errors.As(err, &no) {
				reasons = err
				break
			}
			reasons = errors.Join(reasons, fmt.Errorf("%v: %w", rung, no.error))
		}
		l.lose(reasons)
		if awake, asleep := l.local.sleepy(); asleep {
			wait(ctx, awake, nil)
			pause = firstPause
			continue
		}
		wait(ctx, nil, time.After(pause/2+rand.N(pause/2)))
		pause = min(2*pause, lastPause)
	}
}

func wait(ctx context.Context, awake <-chan struct{}, timer <-chan time.Time) {
	select {
	case <-ctx.Done():
	case <-awake:
	case <-timer:
	}
}

func (r Rung) String() string {
	return [...]string{Off: "off", ShortTTL: "short_ttl", PubSub: "pubsub", Tracking: "tracking"}[r]
}

// lose ends the trust in the link, and then drops everything: what was inserted under that trust, and reads under way.
func (l *link) lose(why error) {
	l.local.settle(why, func() { l.until, l.rung, l.tried = 0, Off, true; l.blameLocked(why) })
	l.local.lost()
}

// doubt notes why a link that listens is not trusted yet. It may be trusted at any moment.
func (l *link) doubt(why unproved) {
	l.local.settle(why, func() { l.tried = true; l.blameLocked(why) })
}

// blameLocked notes why the link is not trusted. If writes are now refused, it reports that even if the rung stays Off.
func (l *link) blameLocked(why error) {
	var is, was unproved
	l.local.retell = errors.As(why, &is) && !errors.As(l.why, &was)
	l.why = why
}

// trust trusts the link up to until. It reports false if the previous trust had already run out: then changes may have been missed, and the
// link must be made anew.
func (l *link) trust(rung Rung, until int64, why error) (still bool) {
	l.local.settle(why, func() {
		if still = l.until == 0 || l.local.clock.Now() <= l.until; still {
			l.rung, l.until, l.tried, l.why = rung, max(l.until, until), true, why
		}
	})
	return still
}

// listen listens on one rung. It returns a refused error if the server does not allow the rung, and another error when the link has broken
// or fallen silent.
func (l *link) listen(ctx context.Context, rung Rung, why error) error {
	if rung == ShortTTL {
		return l.doWithout(ctx, why)
	}
	return newSession(l, rung, why).run(ctx)
}

// doWithout gets by without hearing anything, until it is worth trying again.
func (l *link) doWithout(ctx context.Context, why error) error {
	if l.local.opt.ShortTTL > 0 {
		l.trust(ShortTTL, forever, errors.Join(errNotHeard, why))
	} else {
		l.lose(errors.Join(errNotHeard, why))
	}
	for {
		wait(ctx, nil, time.After(climbEvery))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if awake, asleep := l.local.sleepy(); asleep {
			wait(ctx, awake, nil)
		}
		if l.couldTrack(ctx) {
			return errHigher
		}
	}
}

// couldTrack reports whether the server allows tracking now.
func (l *link) couldTrack(ctx context.Context) bool {
	client := redis.NewClient(l.options(Tracking))
	defer client.Close()
	return client.Ping(ctx).Err() == nil
}

// options are the caller's, adapted for a connection that listens.
func (l *link) options(rung Rung) *redis.Options {
	o := *l.node.Options()
	silence := l.local.opt.Silence
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.PipelinePoolSize = 1, 0, 0, 0, -1
	o.MaxRetries, o.DialerRetries = -1, 1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = silence, silence, silence, silence
	o.ContextTimeoutEnabled = true
	o.Limiter, o.AutoPipelineOptions, o.PushNotificationProcessor = nil, nil, nil
	o.ClientSideCacheConfig, o.ClientSideCache = nil, nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if rung == Tracking {
		o.Protocol = 3
		theirs := o.OnConnect
		o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
			if theirs != nil {
				if err := theirs(ctx, conn); err != nil {
					return err
				}
			}
			return l.startTracking(ctx, conn)
		}
	}
	return &o
}

// startTracking makes Redis push changes to conn. It sends HELLO itself because go-redis falls back to RESP2 if HELLO is refused, where
// Redis accepts tracking but has no way to push.
func (l *link) startTracking(ctx context.Context, conn *redis.Conn) error {
	if err := conn.Do(ctx, "hello", 3).Err(); err != nil {
		return refusal(err)
	}
	args := []any{"client", "tracking", "on", "bcast", "prefix", probeName}
	for _, p := range l.local.opt.Prefixes {
		args = append(args, "prefix", p)
	}
	return refusal(conn.Do(ctx, args...).Err())
}

// refusal distinguishes an answer that means never from an answer that means not now, and from no answer.
func refusal(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) || errors.Is(err, redis.Nil) {
		return err
	}
	for _, later := range []string{"LOADING", "CLUSTERDOWN", "MASTERDOWN", "BUSY", "TRYAGAIN", "MOVED", "ASK", "READONLY", "OOM", "MISCONF", "NOREPLICAS", "NOAUTH", "WRONGPASS"} {
		if redis.HasErrorPrefix(err, later) {
			return err
		}
	}
	if redis.HasErrorPrefix(err, "max number of clients") {
		return err
	}
	return refused{err}
}

// Rung says how changes are heard. A higher rung promises more.
type Rung uint8

const (
	Off      Rung = iota // not at all for now: nothing is served
	ShortTTL             // not at all: copies are short-lived
	PubSub               // from the processes that use this library
	Tracking             // from the server
)
