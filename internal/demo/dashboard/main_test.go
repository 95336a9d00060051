package dashboard_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// silent drops what go-redis says about a Redis that these tests kill.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	os.Exit(m.Run())
}
