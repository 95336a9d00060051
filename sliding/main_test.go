package sliding_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/processes"
)

// silent drops what go-redis says about servers that these tests break.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// TestMain runs the tests, or one of the processes that they start.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	os.Exit(processes.Main(m))
}
