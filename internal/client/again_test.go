// Package client_test holds the tests of the small rooms of this wing, one file each. They are one program, as it takes longer to
// link a program than to run any of them.
package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/again"
	"github.com/mayflycache/mayfly/redistest"
)

// A refused command is sent six times, in about a quarter of a second, and no longer than the caller waits.
func TestHowOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for accepted, want := range map[int]int{1: 1, 3: 3, 6: 6, 100: 6} {
			sent, begun := 0, time.Now()
			again.Until(t.Context(), func() bool { sent++; return sent < accepted })
			if took := time.Since(begun); sent != want || took > 400*time.Millisecond || want == 6 && took < 100*time.Millisecond {
				t.Errorf("sent %d times in %v, want %d", sent, took, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		sent := 0
		again.Until(ctx, func() bool { sent++; return true })
		if sent != 1 {
			t.Errorf("sent %d times", sent)
		}
	})
}

func TestNotExecuted(t *testing.T) {
	srv := redistest.Start(t)
	for reply, want := range map[string]bool{
		"LOADING Redis is loading the dataset in memory": true, "READONLY You can't write against a read only replica. script: x": true,
		"MASTERDOWN Link with MASTER is down": true, "CLUSTERDOWN The cluster is down": true, "TRYAGAIN Multiple keys": true, "NOREPLICAS Not enough good replicas to write.": true,
		"ERR unknown command": false, "WRONGTYPE Operation": false, "NOSCRIPT No matching script": false, "OOM command not allowed": false,
	} {
		srv.FailNext("echo", reply)
		opt := *srv.Options()
		opt.MaxRetries = -1
		rdb := redis.NewClient(&opt)
		err := rdb.Echo(t.Context(), "x").Err()
		rdb.Close()
		if err == nil || again.NotExecuted(err) != want || again.NotExecuted(fmt.Errorf("wrapped: %w", err)) != want {
			t.Errorf("%v: %v", err, again.NotExecuted(err))
		}
	}
	if again.NotExecuted(nil) || again.NotExecuted(errors.New("LOADING says the network")) {
		t.Error("no reply is one")
	}
}
