package sendonce

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
	return is && refusal(answer.Error())
}

func refusal(reply string) bool {
	return slices.ContainsFunc(refusals, func(code string) bool { return strings.HasPrefix(reply, code) })
}

// tries is how often a command is sent that is not executed: with the pauses between, for about a quarter of a second, which a
// slot's migration and the end of a failover take. (What got no connection is not repeated here: the pool has waited for one,
// and dialled again, as the client's options say.)
const tries = 6

// again calls send until the server does not refuse to execute what it sends, as go-redis does with commands that may be repeated.
func again(ctx context.Context, send func() (refused bool)) {
	for try := range tries {
		if refused := send(); !refused || try == tries-1 {
			return
		}
		if pause := 8 * time.Millisecond << try; sleep(ctx, pause/2+rand.N(pause)) != nil {
			return
		}
	}
}

// Rest waits after a lost race: the more often it was lost, the longer, up to a few milliseconds.
func Rest(ctx context.Context, try int) error {
	most := time.Duration(min(try, 16)) * 250 * time.Microsecond
	return sleep(ctx, rand.N(most+1))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
