package sliding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
	"github.com/mayflycache/mayfly/internal/hashslot"
)

// Ask is what [AllowAll] is to ask of one limiter: see [Limiter.Ask].
type Ask struct {
	err   error // why it cannot be asked
	limit int
	redis sendonce.Bounded
	rdb   redis.UniversalClient
	full  string
	n     int
	args  []any
	open  bool // FailOpen

	local func() (s *share, d Decision, ok bool) // from a share
	read  func(reply []int64) Decision
	odd   func(reply []int64) error
	tell  func(ctx context.Context, d Decision, err error)
}

// Ask is n calls of key, for [AllowAll]. It does no I/O.
func (l *Limiter[K]) Ask(key K, n int) Ask {
	full, err := l.full(key, n)
	if err != nil {
		return Ask{err: err}
	}
	return Ask{
		redis: l.redis, rdb: l.room.Redis, full: full, limit: l.opt.Limit, n: n, args: []any{n, l.limit, l.whole, l.numbers}, open: l.opt.FailOpen,
		local: func() (s *share, d Decision, ok bool) {
			if l.leases != nil {
				if e := l.leases.find(key); e != nil {
					s = e.share.Load()
					d, ok = s.admit(n, time.Now())
				}
			}
			return s, d, ok
		},
		read: func(reply []int64) Decision { return l.read(n, reply) },
		odd:  func(reply []int64) error { return l.odd(full, reply) },
		tell: func(ctx context.Context, d Decision, err error) { l.tell(ctx, full, d, err) },
	}
}

// AllowAll asks several limits at once, such as one a second and one a day, or one of an account and one of an address: all admit their calls, or
// none is counted. It is one round trip, sent once, and none if shares of the process have all the calls; see [LimiterOptions.Lease]. It takes no
// shares itself.
//
// It returns whether all was admitted, and what each limit says, in the order of asks: Allowed is then whether that limit had room for its calls,
// which were counted only if all had. With an error each is allowed that has [LimiterOptions.FailOpen], and all are if each is. If the reply
// was lost the error is mayfly.ErrUnknownOutcome: all calls that the trip was for were counted, or none of them.
//
// The limiters have one client. Of a cluster all keys must lie in one slot, or the error says so and nothing is counted: put what they share in
// braces, as the key "{ada}" for limiters with the prefixes "second:" and "day:". Two asks cannot be of one key.
func AllowAll(ctx context.Context, asks ...Ask) (allowed bool, each []Decision, err error) {
	each = make([]Decision, len(asks))
	if err := together(asks); err != nil {
		return false, each, err
	}
	var far []int // those that need the trip
	taken := make([]*share, len(asks))
	for i, a := range asks {
		var ok bool
		if taken[i], each[i], ok = a.local(); !ok {
			taken[i], far = nil, append(far, i)
		}
	}
	allowed = true
	if len(far) > 0 {
		allowed, err = askAll(ctx, asks, far, each)
	}
	if err != nil {
		allowed = true
		for i, a := range asks {
			each[i] = Decision{Limit: a.limit, Allowed: a.open}
			allowed = allowed && a.open
		}
	}
	for i, a := range asks {
		if taken[i] != nil && !allowed {
			taken[i].calls.Add(int64(a.n)) // of a share that was closed meanwhile they are lost
		}
		if allowed || err != nil || !each[i].Allowed {
			a.tell(ctx, each[i], err)
		}
	}
	return allowed, each, err
}

// together returns why asks cannot be asked together.
func together(asks []Ask) error {
	if len(asks) == 0 {
		return errors.New("sliding: AllowAll got nothing to ask: give it what Limiter.Ask returns")
	}
	first := asks[0]
	for i, a := range asks {
		switch {
		case a.err != nil:
			return a.err
		case a.local == nil:
			return fmt.Errorf("sliding: ask %d of AllowAll is empty: make it with Limiter.Ask", i+1)
		case a.rdb != first.rdb:
			return fmt.Errorf("sliding: AllowAll of %q and %q: their limiters have different clients, and so no trip in common: give them one", first.full, a.full)
		}
		for _, b := range asks[:i] {
			if a.full == b.full {
				return fmt.Errorf("sliding: AllowAll asks twice for %q: ask once for all its calls, and give each limiter a prefix of its own", a.full)
			}
		}
		apart := false
		switch a.rdb.(type) {
		case *redis.ClusterClient:
			apart = hashslot.Of(a.full) != hashslot.Of(first.full)
		case *redis.Ring:
			apart = hashslot.Hashed(a.full) != hashslot.Hashed(first.full) // servers are chosen by this part
		}
		if apart {
			return fmt.Errorf("sliding: AllowAll of %q and %q: they lie in different slots, and so no trip asks both: put what the keys share in braces, as in {ada}", first.full, a.full)
		}
	}
	return nil
}

// function is a way to count as a function, which returns the room for calls of one key and what counts those to take, and answers; or that the key is
// somebody else's.
func (w way) function() string {
	return w.fill(`way[$numbers] = function(key, n, limit, window)
$look
$clock
$weigh
return room, function(take)
$put
return $says
end
end
`)
}

// allAsked asks for calls of several keys: n, limit, window and numbers of each. It answers for each as its own script does, or with a number that
// says that a key is somebody else's, and which.
var allAsked = sendonce.NewScript("local way = {}\n" + fixedWindow.function() + slidingWindow.function() + strictWindow.function() + `local all, answer = true, {}
local fit, count, calls = {}, {}, {}
for i, key in ipairs(KEYS) do
	calls[i] = tonumber(ARGV[4 * i - 3])
	local room, counts = way[tonumber(ARGV[4 * i])](key, calls[i], tonumber(ARGV[4 * i - 2]), tonumber(ARGV[4 * i - 1]))
	if not counts then return {room[1], i} end
	fit[i], count[i] = calls[i] <= room, counts
	all = all and fit[i]
end
for i = 1, #KEYS do
	local a, b, c = count[i](all and calls[i] or 0)
	for _, said in ipairs({fit[i] and 1 or 0, a, b, c}) do answer[#answer + 1] = said end
end
return answer`)

// askAll makes the trip for those of asks that are far, and writes what each limit says. They have one server.
func askAll(ctx context.Context, asks []Ask, far []int, each []Decision) (allowed bool, err error) {
	keys, args := make([]string, len(far)), make([]any, 0, 4*len(far))
	for n, i := range far {
		keys[n], args = asks[i].full, append(args, asks[i].args...)
	}
	rdb := asks[far[0]].redis
	reply, err := allAsked.IntsOnceOf(ctx, rdb, keys, args...)
	switch {
	case err == nil && len(reply) == 2:
		err = asks[far[reply[1]-1]].odd(reply[:1])
	case err == nil && len(reply) != 4*len(far):
		err = fmt.Errorf("a script answered %v", reply)
	}
	if err != nil {
		if !errors.Is(err, mayfly.ErrForeign) {
			err = sendonce.Outcome(ctx, rdb, keys[0], err)
		}
		return false, fmt.Errorf("sliding: allow all of %q: %w", keys, err)
	}
	allowed = true
	for n, i := range far {
		each[i] = asks[i].read(reply[4*n : 4*n+4])
		allowed = allowed && each[i].Allowed
	}
	return allowed, nil
}
