package mayfly_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/redistest"
)

func ExampleOpenLocal() {
	srv, err := redistest.Run() // stands for a Redis
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := srv.Client()
	defer rdb.Close()
	ctx := context.Background()

	local, err := mayfly.OpenLocal(ctx, mayfly.LocalOptions{
		Redis:    rdb,
		Prefixes: []string{"cache:"}, // of all namespaces that use it
		MaxBytes: 64 << 20,
	})
	if err != nil {
		panic(err)
	}
	defer local.Close(ctx)
	users := mayfly.Namespace[int64, User]{Name: "users", Redis: rdb, Prefix: "cache:user:", TTL: time.Hour, Local: local}
	cache := mayfly.Must(cacheaside.New(users, func(_ context.Context, id int64) (User, error) {
		return User{fmt.Sprint("user ", id)}, nil
	}, cacheaside.Options{}))
	defer cache.Close(ctx)

	var e cacheaside.Entry[User]
	for e.Outcome != mayfly.OutcomeHitLocal { // the first Get loads, the second reads Redis, the next are local
		if _, err := cache.Get(ctx, 7); err != nil {
			panic(err)
		}
		e, _, _ = cache.Lookup(ctx, 7)
	}
	fmt.Println(local.Stats().Rung, e.Value.Name, e.Outcome)
	// Output: tracking user 7 hit_local
}
