package sliding_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// loggedOut deletes the old key while Rotate creates the new one, and loses every UNLINK.
type loggedOut struct{ other *redis.Client }

func (h loggedOut) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h loggedOut) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "unlink" {
			return io.EOF
		}
		err := next(ctx, cmd)
		if cmd.Name() == "set" {
			h.other.Del(ctx, "s:old")
		}
		return err
	}
}

func (h loggedOut) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A session that may still be there under its new key is not "not found".
func TestALogoutDuringARotateWhoseDeleteIsLost(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client()
	s := expect.Value(sliding.New(mayfly.Namespace[string, login]{Name: "s", Redis: rdb, Prefix: "s:", TTL: time.Hour}, sliding.Options{}))(t)
	expect.OK(t, s.Create(t.Context(), "old", login{"ada"}))
	rdb.AddHook(loggedOut{redis.NewClient(srv.Options())})
	err := s.Rotate(t.Context(), "old", "new")
	if errors.Is(err, mayfly.ErrNotFound) || !errors.Is(err, mayfly.ErrUnknownOutcome) {
		t.Errorf("got %v", err)
	}
	if v, err := s.Peek(t.Context(), "new"); v.User != "ada" || err != nil {
		t.Errorf("the new key holds %v, %v: the test has not played what it is about", v, err)
	}
}
