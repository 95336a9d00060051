package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/redistest"
)

var (
	yes = nodes.NewScript(`return 1`)
	put = nodes.NewScript(`redis.call('SET', KEYS[1], 'v', 'PX', 60000) return 1`)
)

// sent counts the commands of a name.
func sent(srv *redistest.Server, name string) (n int) {
	for _, line := range srv.Log() {
		if word, _, _ := strings.Cut(line, " "); strings.EqualFold(word, name) {
			n++
		}
	}
	return n
}

// A script that a server has forgotten is sent to it whole once, however many callers find that out, and by name by all others.
func TestACrowdBringsAScriptOnce(t *testing.T) {
	for _, connections := range []int{3, 100} {
		for each := range 3 { // calls on one trip
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				a := ask(t, srv, connections)
				srv.Latency(5 * time.Millisecond)
				n, err := a.Of(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				const callers = 100
				for range 2 { // the second time the script was known
					srv.ClearLog()
					if err := a.rdb.ScriptFlush(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
					var all sync.WaitGroup
					for i := range callers {
						all.Go(func() {
							calls := []nodes.Call{yes.Call([]string{"k"})}
							for range each {
								calls = append(calls, put.Call([]string{fmt.Sprint("k", i)}))
							}
							did, errs := n.Run(t.Context(), calls...)
							if slices.Contains(did, false) || errors.Join(errs...) != nil {
								t.Error(did, errs)
							}
						})
					}
					all.Wait()
					scripts := 1 + min(each, 1)
					if whole, named := sent(srv, "eval"), sent(srv, "evalsha"); whole > 2*scripts-1 || named+whole > 2*callers*(1+each) {
						t.Errorf("%d connections, %d scripts: %d whole, %d by name", connections, scripts, whole, named)
					}
				}
			})
		}
	}
}

// A caller that waits until another one brings a script leaves when its context ends, without having sent anything. If bringing it fails, another
// caller brings it.
func TestTheCallerThatBringsAScriptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		a := ask(t, srv, 100)
		n, _ := a.Of(t.Context(), "k")
		if _, errs := n.Run(t.Context(), yes.Call([]string{"k"})); errs[0] != nil {
			t.Fatal(errs)
		}
		if err := a.rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		srv.DropReply("eval") // to the caller that brings it
		srv.ClearLog()
		var all sync.WaitGroup
		failed, left := 0, 0
		var mu sync.Mutex
		for i := range 20 {
			all.Go(func() {
				ctx := t.Context()
				if i%2 == 1 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
					defer cancel()
				}
				_, errs := n.RunOnce(ctx, yes.Call([]string{"k"}))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errs[0] == nil:
				case nodes.Unsent(errs[0]) && errors.Is(errs[0], context.DeadlineExceeded) && i%2 == 1:
					left++
				default:
					failed++
				}
			})
		}
		all.Wait()
		if failed > 1 || failed+left == 0 || sent(srv, "eval") > 2 {
			t.Errorf("%d failed, %d left, it was brought %d times", failed, left, sent(srv, "eval"))
		}
	})
}
