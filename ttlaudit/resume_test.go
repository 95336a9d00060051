package ttlaudit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

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

// A server that was restarted while it was walked is not taken for one that was walked, neither by the audit nor by its resumption.
func TestARestartIsNotForgotten(t *testing.T) {
	srv := redistest.Start(t)
	fill(t, srv.Client(), 1000)
	rdb := redis.NewClient(srv.Options())
	defer rdb.Close()
	restarts := 0
	rdb.AddHook(&meddling{after: func(cmd *redis.ScanCmd) {
		if _, next := cmd.Val(); next == 0 && restarts == 0 {
			restarts++
			if err := srv.Restart(); err != nil {
				t.Error(err)
			}
		}
	}})
	var state []byte
	o := ttlaudit.Options{MaxRate: -1, Sizes: -1, Checkpoint: func(s []byte) error { state = s; return nil }}
	if r, err := ttlaudit.Run(t.Context(), rdb, o); err == nil || !strings.Contains(err.Error(), "was restarted meanwhile") || r.Complete {
		t.Fatalf("%+v, %v", r, err)
	}
	o.Resume = state
	if r, err := ttlaudit.Run(t.Context(), rdb, o); err == nil || !strings.Contains(err.Error(), "was restarted while it was walked: begin anew") {
		t.Errorf("resumed: %+v, %v", r, err)
	}
}

// A variable that was handed over before a client was put in is an error.
func TestNoClient(t *testing.T) {
	plan := ttlaudit.Plan{Give: []ttlaudit.Give{{Pattern: "a:*", TTL: time.Hour}}}
	for _, rdb := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil), &redis.Client{}} {
		if _, err := ttlaudit.Run(t.Context(), rdb, ttlaudit.Options{}); err == nil || !strings.Contains(err.Error(), "give it a client") && !strings.Contains(err.Error(), "is an empty") {
			t.Errorf("Run of %T: %v", rdb, err)
		}
		if _, err := ttlaudit.Fix(t.Context(), rdb, plan); err == nil {
			t.Errorf("Fix of %T did", rdb)
		}
	}
}
