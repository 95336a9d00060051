// Package again repeats what a server says that it did not execute, as go-redis does with commands that may be repeated. Others, which
// go-redis sends once, need it: a failover, or a slot on its way, is no reason to fail.
package again

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// refusals begin the replies of a server that did not execute a command, and may in a moment: it reads its data, a slot of its is on
// the way or without an owner, or a failover goes on.
var refusals = []string{"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "NOREPLICAS "}

// NotExecuted reports whether err is the reply that a command was not executed now, and may be soon. So it can be sent again.
func NotExecuted(err error) bool {
	answer, is := errors.AsType[redis.Error](err)
	return is && Refusal(answer.Error())
}

// Refusal is NotExecuted of a reply's text.
func Refusal(reply string) bool {
	return slices.ContainsFunc(refusals, func(code string) bool { return strings.HasPrefix(reply, code) })
}

// tries is how often a command is sent that is not executed: with the pauses between, for about a quarter of a second, which a
// slot's migration and the end of a failover take. (What got no connection is not repeated here: the pool has waited for one,
// and dialled again, as the client's options say.)
const tries = 6

// Until calls send until it does not report that what it sent was refused, [tries] times at most.
func Until(ctx context.Context, send func() (refused bool)) {
	for try := range tries {
		if refused := send(); !refused || try == tries-1 {
			return
		}
		if pause := 8 * time.Millisecond << try; Sleep(ctx, pause/2+rand.N(pause)) != nil {
			return
		}
	}
}

// Sleep waits for d, or until ctx is done, which is its error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
