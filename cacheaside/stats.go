package cacheaside

import (
	"context"
	"sync/atomic"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/events"
)

// Stats says what a cache has done since it was made. The first seven fields count the reads of Get, GetMany and Fetch by outcome.
type Stats struct {
	Local    uint64 // from the local tier, which counts those of Lookup, too
	Redis    uint64 // fresh, from Redis
	Stale    uint64 // from Redis, past the TTL and within the window
	Negative uint64 // from Redis: remembered as absent at the origin
	Missed   uint64 // had to be loaded, by this call or by one that it waited for
	Bypassed uint64 // had to be loaded, as Redis could not be asked
	Failed   uint64 // with an error, also if Redis was not asked, because the context had ended or the cache was closed

	Loads      uint64 // calls of the loader, those for renewals included
	LoadErrors uint64 // of them: that failed or took too long. That the origin has no such thing is no error
	Renewals   uint64 // values that were renewed before they expired, or while they were stale
	Refused    uint64 // loaded values that were not stored, as the key was deleted or replaced meanwhile, or is held ([Options].Hold)

	RedisErrors uint64 // questions that Redis did not answer, or with an error
}

// Stats returns the counts. Counting costs reads nothing measurable. What the local tier holds is in the Stats of the mayfly.Local.
func (c *Cache[K, V]) Stats() Stats {
	n := c.counts
	return Stats{
		Local: c.local.Hits(), Redis: n.redis.Load(), Stale: n.stale.Load(), Negative: n.negative.Load(), Missed: n.missed.Load(),
		Bypassed: n.bypassed.Load(), Failed: n.failed.Load(), Loads: n.loads.Load(), LoadErrors: n.loadErrors.Load(),
		Renewals: n.renewals.Load(), Refused: n.refused.Load(), RedisErrors: n.redisErrors.Load(),
	}
}

// counts holds the running counts of Stats. The local tier counts its own answers.
type counts struct {
	redis, stale, negative, missed, bypassed, failed  atomic.Uint64
	loads, loadErrors, renewals, refused, redisErrors atomic.Uint64
}

// counted reports an event and counts it.
func (n *counts) counted(tell events.Teller) events.Teller {
	return func(ctx context.Context, e mayfly.Event) {
		n.count(e.Kind, e.Outcome)
		tell(ctx, e)
	}
}

func (n *counts) count(kind mayfly.Kind, outcome mayfly.Outcome) {
	switch kind {
	case mayfly.KindRead:
		n.read(outcome)
	case mayfly.KindLoad:
		n.loads.Add(1)
		if outcome != mayfly.OutcomeOK && outcome != mayfly.OutcomeNegative {
			n.loadErrors.Add(1)
		}
	case mayfly.KindRefresh:
		if outcome == mayfly.OutcomeOK {
			n.renewals.Add(1)
		}
	case mayfly.KindFill:
		if outcome == mayfly.OutcomeRefused {
			n.refused.Add(1)
		}
	case mayfly.KindBackend:
		n.redisErrors.Add(1)
	}
}

func (n *counts) read(outcome mayfly.Outcome) {
	switch outcome {
	case mayfly.OutcomeHitRedis:
		n.redis.Add(1)
	case mayfly.OutcomeStale:
		n.stale.Add(1)
	case mayfly.OutcomeNegative:
		n.negative.Add(1)
	case mayfly.OutcomeMiss:
		n.missed.Add(1)
	case mayfly.OutcomeBypass:
		n.bypassed.Add(1)
	default:
		n.failed.Add(1)
	}
}
