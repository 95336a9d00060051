package sliding_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// A change is told when the master has made it; a replica that lags still has the old value then, and a copy of that would stay.
func TestCopiesAreNotMadeOfReplicas(t *testing.T) {
	o := redistest.StartCluster(t, 3).Client().Options()
	for _, readOnly := range []bool{false, true} {
		o := *o
		o.ReadOnly = readOnly
		rdb := redis.NewClusterClient(&o)
		defer rdb.Close()
		local, err := mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{"cart:"}, MaxEntries: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close(context.Background())
		ns := mayfly.Namespace[string, cart]{Name: "carts", Redis: rdb, Prefix: "cart:", TTL: idle}
		if _, err := sliding.New(ns, sliding.Options{}); err != nil {
			t.Errorf("without copies: %v", err)
		}
		ns.Local = local
		if _, err := sliding.New(ns, sliding.Options{}); (err != nil) != readOnly || err != nil && !strings.Contains(err.Error(), "ReadOnly") {
			t.Errorf("ReadOnly %v: %v", readOnly, err)
		}
	}
}
