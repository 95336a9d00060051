package localsync_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/redistest"
)

func Example() {
	srv, err := redistest.Run()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := srv.Client()
	defer rdb.Close()
	ctx := context.Background()

	t, err := localsync.Open(ctx, localsync.Options{Redis: rdb, Prefixes: []string{"user:"}, MaxEntries: 100, Silence: 2 * time.Second})
	if err != nil {
		panic(err)
	}
	defer t.Close(ctx)
	names := localstore.NewValues[string](t.Store())
	copyOf := func(key string) (string, bool) {
		now := t.Now()
		if !t.Trusted(now) {
			return "", false
		}
		name, _, ok := names.Get(key, now)
		return name, ok
	}

	rdb.Set(ctx, "user:7", "Ada", time.Hour)
	for _, ok := copyOf("user:7"); !ok; _, ok = copyOf("user:7") { // until the push of this SET has come and gone
		ticket := t.Begin("user:7") // before Redis is read
		value, left := rdb.Get(ctx, "user:7").Val(), rdb.PTTL(ctx, "user:7").Val()
		localsync.Insert(t, names, "user:7", ticket, value, int64(len(value)), left)
	}
	fmt.Println(copyOf("user:7"))

	srv.Del("user:7") // by any client
	for _, ok := copyOf("user:7"); ok; _, ok = copyOf("user:7") {
	}
	fmt.Println(copyOf("user:7"))
	// Output:
	// Ada true
	//  false
}
