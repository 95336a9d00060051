package sliding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
	"github.com/mayflycache/mayfly/internal/hashslot"
)

// Ask is a question to one limiter for [AllowAll]: see [Limiter.Ask].
type Ask struct {
	err   error // why the limiter cannot be asked
	limit int
	redis sendonce.Bounded
	rdb   redis.UniversalClient
	full  string
	n     int
	args  []any
	open  bool // FailOpen

	find func() *lessee // returns what this process holds of the key, or nil
	read func(reply []int64) Decision
	odd  func(reply []int64) error
	tell func(ctx context.Context, d Decision, err error)
}

// Ask stands for n calls of key, for [AllowAll]. It does no I/O.
func (l *Limiter[K]) Ask(key K, n int) Ask {
	full, err := l.full(key, n)
	if err != nil {
		return Ask{err: err, limit: l.opt.Limit}
	}
	return Ask{
		redis: l.redis, rdb: l.room.Redis, full: full, limit: l.opt.Limit, n: n, args: []any{n, l.limit, l.whole, l.numbers}, open: l.opt.FailOpen,
		find: func() *lessee {
			if l.leases == nil {
				return nil
			}
			return l.leases.find(key)
		},
		read: func(reply []int64) Decision { return l.read(n, reply) },
		odd:  func(reply []int64) error { return l.odd(full, reply) },
		tell: func(ctx context.Context, d Decision, err error) { l.tell(ctx, full, d, err) },
	}
}

// AllowAll asks several limits at once, such as one per second and one per day, or one of an account and one of an address. Either all admit their
// calls, or none is counted. It is one round trip, sent once, or none if this process's shares have the calls of each limit; see
// [LimiterOptions.Lease]. The trip takes no new shares, and uses none.
//
// AllowAll returns whether all were admitted, and each limit's decision, in the order of asks. There Allowed says whether that limit had room for
// its calls; they were counted only if all limits had room. After an error, each limit with [LimiterOptions.FailOpen] allows its calls, and
// allowed is true if each does. If the reply was lost, the error is mayfly.ErrUnknownOutcome: either all calls of the trip were counted, or none.
//
// The limiters must have the same client. In a cluster all keys must lie in one slot, or else AllowAll returns an error and nothing is counted: put
// the part that the keys share in braces, as the key "{ada}" for limiters with the prefixes "second:" and "day:". Two asks cannot have the same key.
func AllowAll(ctx context.Context, asks ...Ask) (allowed bool, each []Decision, err error) {
	each = make([]Decision, len(asks))
	for i, a := range asks {
		each[i].Limit = a.limit
	}
	if err := mistake(asks); err != nil {
		return false, each, err
	}
	if err = apart(asks); err == nil {
		if allowed = admitAll(asks, each); !allowed {
			allowed, err = askAll(ctx, asks, each)
		}
	}
	if err != nil {
		allowed = true
		for i, a := range asks {
			each[i] = Decision{Limit: a.limit, Allowed: a.open}
			allowed = allowed && a.open
		}
	}
	for i, a := range asks {
		if allowed || err != nil || !each[i].Allowed {
			a.tell(ctx, each[i], err)
		}
	}
	return allowed, each, err
}

// admitAll admits all asks from shares, and sets each limit's decision, or admits none. It holds the keys' locks, so no share ends or is replaced
// in the meantime, and calls taken from one share can be put back if another has too few.
func admitAll(asks []Ask, each []Decision) bool {
	keys := make([]*lessee, len(asks))
	for i, a := range asks {
		if keys[i] = a.find(); keys[i] == nil {
			return false
		}
	}
	inOrder := slices.SortedFunc(slices.Values(keys), func(a, b *lessee) int { return strings.Compare(a.full, b.full) }) // so that two callers never wait for each other
	for _, e := range inOrder {
		e.mu.Lock()
		defer e.mu.Unlock()
	}
	now := time.Now()
	for i, a := range asks {
		var ok bool
		if each[i], ok = keys[i].share.Load().admit(a.n, now); !ok {
			for k, back := range asks[:i] {
				keys[k].share.Load().calls.Add(int64(back.n))
			}
			return false
		}
	}
	return true
}

// mistake returns the first mistake in asks, apart from keys in different slots.
func mistake(asks []Ask) error {
	if len(asks) == 0 {
		return errors.New("sliding: AllowAll got nothing to ask: give it what Limiter.Ask returns")
	}
	first := asks[0]
	for i, a := range asks {
		switch {
		case a.err != nil:
			return a.err
		case a.find == nil:
			return fmt.Errorf("sliding: ask %d of AllowAll is empty: make it with Limiter.Ask", i+1)
		case a.rdb != first.rdb:
			return fmt.Errorf("sliding: AllowAll of %q and %q: their limiters have different clients, and so no trip in common: give them one", first.full, a.full)
		}
		for _, b := range asks[:i] {
			if a.full == b.full {
				return fmt.Errorf("sliding: AllowAll asks twice for %q: ask once for all its calls, and give each limiter a prefix of its own", a.full)
			}
		}
	}
	return nil
}

// apart returns an error if no single command can reach all keys of asks.
func apart(asks []Ask) error {
	first := asks[0]
	for _, a := range asks[1:] {
		apart := false
		switch a.rdb.(type) {
		case *redis.ClusterClient:
			apart = hashslot.Of(a.full) != hashslot.Of(first.full)
		case *redis.Ring:
			apart = hashslot.Hashed(a.full) != hashslot.Hashed(first.full) // this part of the key selects the server
		}
		if apart {
			return fmt.Errorf("sliding: AllowAll of %q and %q: they lie in different slots, and so no trip asks both: put what the keys share in braces, as in {ada}", first.full, a.full)
		}
	}
	return nil
}

// function returns a way to count as a Lua function. For the calls of one key it returns the room, and a second function that counts the calls it is
// given and returns the answer. If the key holds a foreign value it returns only a number.
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

// allAsked asks for calls of several keys, with n, limit, window and numbers for each. It answers for each key what the key's own script would
// answer, or with a number that says that a key holds a foreign value, and which key.
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

// askAll makes the round trip, and writes each limit's decision. The keys lie on one server. It takes nothing from shares: if a limit denied, the
// calls would have to be put back after the trip, and by then the share may have ended and been given back.
func askAll(ctx context.Context, asks []Ask, each []Decision) (allowed bool, err error) {
	keys, args := make([]string, len(asks)), make([]any, 0, 4*len(asks))
	for i, a := range asks {
		keys[i], args = a.full, append(args, a.args...)
	}
	rdb := asks[0].redis
	reply, err := allAsked.IntsOnceOf(ctx, rdb, keys, args...)
	switch {
	case err == nil && len(reply) == 2:
		err = asks[reply[1]-1].odd(reply[:1])
	case err == nil && len(reply) != 4*len(asks):
		err = fmt.Errorf("a script answered %v", reply)
	}
	if err != nil {
		if !errors.Is(err, mayfly.ErrForeign) {
			err = sendonce.OutcomeOf(ctx, rdb, keys, err)
		}
		return false, fmt.Errorf("sliding: allow all of %q: %w", keys, err)
	}
	allowed = true
	for i, a := range asks {
		each[i] = a.read(reply[4*i : 4*i+4])
		allowed = allowed && each[i].Allowed
	}
	return allowed, nil
}
