package sliding_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// A client that is still nil when it is handed over is an error, never a panic.
func TestAClientThatIsNil(t *testing.T) {
	srv := redistest.Start(t)
	local, err := mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: srv.Client(), Prefixes: []string{"session:"}, MaxEntries: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close(t.Context())
	for _, rdb := range []redis.UniversalClient{&redis.Client{}, &redis.ClusterClient{}, &redis.Ring{}, nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil)} {
		for _, l := range []*mayfly.Local{nil, local} {
			_, err := sliding.New(mayfly.Namespace[string, cart]{Name: "sessions", Redis: rdb, Prefix: "session:", TTL: time.Hour, Local: l}, sliding.Options{})
			if err == nil || !strings.Contains(err.Error(), "Namespace.Redis is nil") && !strings.Contains(err.Error(), "Namespace.Redis is an empty *redis.") {
				t.Errorf("%T: %v", rdb, err)
			}
		}
	}
}
