// Package promises holds every way in which a package of mayfly writes to Redis against one rule: a call that returned nil leaves nothing
// of itself behind that can still take effect.
//
// A request may arrive long after its client gave up on it, after the same call was repeated on another connection and answered. The
// table says for each writing call what is there before, what others may do after it, and what must then be so; the tests put a proxy
// between, and have requests come late, come twice, and lose their replies:
//
//	after nil       a late copy changes nothing. Where Redis holds copies, nothing older comes back than what others wrote
//	                or deleted since; a lease of nobody's may be left for its second, and a value may be gone, which costs a load.
//	                A renewal that comes late may give a value more time, and do nothing else
//	after an error  one copy at most takes effect, once, whenever it comes. A pattern that holds the truth says ErrUnknownOutcome
//	a lost reply    nil only if it was done, once
//
// A call that writes has a row here. A row that fails says which request was late, how it was answered, and what went through the proxy.
package promises

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// row is one writing call, and what others do after it.
type row struct {
	name string
	open func(w world) call

	// claims is that the write is a claim, under which what is read from the origin is then stored.
	claims bool

	// skip is which of the call's writes is held or lost: zero is the first.
	skip int

	// unknown is that every error which the call returns after a lost answer must be mayfly.ErrUnknownOutcome.
	unknown bool

	// copies is that Redis holds copies, and the call waits for Redis in its own way: its own timeouts are for the long form.
	copies bool

	// slow is that others wait for what a failed call leaves behind: only late copies after nil are tried in a plain run.
	slow bool

	// endless is that the keys may have no end: the package writes none of its own.
	endless bool
}

// call is a row, opened in a world of its own.
type call struct {
	// do is the call, through the proxy. Its errors that are no answer of Redis's are the test's.
	do func() error

	// about is what each request of the call mentions whose fate is in question. Empty is the world's prefix.
	about string

	// done tells how often the call has been done, as others see it. Nil is not to be told.
	done func() int

	// later is what others do once the call has returned, directly, and can be done again. Nil is nothing.
	later func()

	// promise returns what is broken after a late request of the call, "" if nothing is. Nil is that nothing in Redis has changed.
	promise func() string
}

// world is a part of a server that one row has for itself.
type world struct {
	t       *testing.T
	ctx     context.Context
	prefix  string                // of all keys
	through redis.UniversalClient // by the proxy
	direct  redis.UniversalClient // as other processes have it
	cut     bool                  // the client behind the proxy gives up when it is cut, and has no other reason to
}

// redisTimeout is how long a cache waits for Redis: that of the call under test as long as by default where its client is to give up by
// itself, all others as long as it takes on a machine that is busy.
func (w world) redisTimeout(rdb redis.UniversalClient) time.Duration {
	if rdb == w.through && !w.cut {
		return 0
	}
	return patience
}

// must ends the test if one of the others fails, who have a good network.
func (w world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Error("one of the others:", err)
	}
}

// rows is every writing call.
func rows() []row {
	return slices.Concat(slidingRows(), limiterRows(), navsessionRows(), fieldttlRows(), foreignRows(), cacheasideRows(), httpcacheRows(), ttlauditRows())
}

// writes are the commands of which one is a write of ours. What is not here is a question, or the frame of a transaction.
const writes = "set setex psetex setnx getset getex getdel del unlink eval evalsha fcall expire pexpire pexpireat persist" +
	" hset hdel hsetex hgetex hexpire hpexpire hpersist incr incrby rpush ltrim zadd zincrby zremrangebyrank"

var worlds atomic.Int64

// prefix is one that no other world has, nor begins with.
func prefix() string { return fmt.Sprintf("w%d:", worlds.Add(1)) }

// changes returns what is different, "" if nothing is.
func changes(before, after []string) string {
	if slices.Equal(before, after) {
		return ""
	}
	return fmt.Sprintf("Redis held\n\t%s\nand now holds\n\t%s", strings.Join(before, "\n\t"), strings.Join(after, "\n\t"))
}
