// Package again repeats commands that a server refused for now. go-redis repeats commands that are safe to repeat; this package is for
// those that go-redis sends only once, which should not fail merely because of a failover or a moving slot.
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

// refusals begin the replies of a server that did not execute a command and may be able to in a moment: it is loading its data, a slot is
// being migrated or has no owner, or a failover is under way.
var refusals = []string{"LOADING ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "NOREPLICAS "}

// NotExecuted reports whether err is a server's reply that it did not execute the command now but may do so soon. Such a command is safe to
// send again.
func NotExecuted(err error) bool {
	answer, is := errors.AsType[redis.Error](err)
	return is && Refusal(answer.Error())
}

// Refusal is NotExecuted for the text of a reply.
func Refusal(reply string) bool {
	return slices.ContainsFunc(refusals, func(code string) bool { return strings.HasPrefix(reply, code) })
}

// tries is how often Until sends a command that keeps being refused. With the pauses in between it takes about a quarter of a second,
// enough for a slot's migration or the end of a failover. (Until does not repeat a command that got no connection: the pool has already
// waited for one and redialled, as the client's options say.)
const tries = 6

// Until calls send, at most [tries] times, until it reports that the server did not refuse what it sent.
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

// Sleep waits for d. If ctx is done first, it returns ctx's error.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
