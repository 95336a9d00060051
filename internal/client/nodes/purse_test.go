package nodes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

func TestAPursePaysForWaitingInVain(t *testing.T) {
	ctx, most := t.Context(), 100*time.Millisecond
	if left := nodes.Purse(ctx, most); left != most {
		t.Errorf("without a purse %v", left)
	}
	ctx = nodes.WithPurse(nodes.WithPurse(ctx, 150*time.Millisecond), time.Hour) // the first one counts
	lost := errors.New("no answer")
	for i, want := range []time.Duration{100 * time.Millisecond, 100 * time.Millisecond, 90 * time.Millisecond, 30 * time.Millisecond, 0} {
		if left := nodes.Purse(ctx, most); left != want {
			t.Errorf("%d: %v is left, want %v", i, left, want)
		}
		err := lost
		if i == 0 {
			err = nil // an answer costs nothing
		}
		nodes.Pay(ctx, 60*time.Millisecond, err)
	}
}
