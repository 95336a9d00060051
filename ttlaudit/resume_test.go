package ttlaudit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/ttlaudit"
)

// unlucky is a hook that ends the audit between the SCAN of a page and the look at it.
type unlucky struct {
	meddling
	page   int // the one that is not looked at
	cancel func()
}

func (u *unlucky) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if u.page--; u.page == 0 {
			u.cancel()
			for _, cmd := range cmds {
				cmd.SetErr(context.Canceled)
			}
			return context.Canceled
		}
		return next(ctx, cmds)
	}
}

// A page that was scanned and not counted, as the audit ended in between, is counted by its resumption.
func TestResumedInTheMiddleOfAPage(t *testing.T) {
	srv := redistest.Start(t)
	fill(t, srv.Client(), 5000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rdb := redis.NewClient(srv.Options())
	defer rdb.Close()
	rdb.AddHook(&unlucky{meddling: meddling{after: func(*redis.ScanCmd) {}}, page: 3, cancel: cancel})
	var state []byte
	r, err := ttlaudit.Run(ctx, rdb, ttlaudit.Options{MaxRate: -1, Sizes: -1, Checkpoint: func(s []byte) error { state = s; return nil }})
	if !errors.Is(err, context.Canceled) || r.Complete || r.Keys == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	r, err = ttlaudit.Run(t.Context(), srv.Client(), ttlaudit.Options{MaxRate: -1, Sizes: -1, Resume: state})
	if err != nil || !maps.Equal(counted(r), filled(5000)) {
		t.Errorf("%.900s, %v", fmt.Sprint(counted(r)), err)
	}
}
