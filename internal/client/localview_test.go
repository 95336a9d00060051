package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/localview"
	"github.com/mayflycache/mayfly/redistest"
)

func Example_localview() {
	ctx := context.Background()
	srv, err := redistest.Run()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := srv.Client()
	defer rdb.Close()
	local, err := mayfly.OpenLocal(ctx, mayfly.LocalOptions{Redis: rdb, Prefixes: []string{"user:"}, MaxBytes: 1 << 20})
	if err != nil {
		panic(err)
	}
	defer local.Close(ctx)
	view := localview.Of[string](mayfly.Namespace[int, string]{Prefix: "user:", Local: local}, nil)

	t := view.Begin("user:7") // before Redis is read
	view.Insert("user:7", t, "Ada", 3, time.Hour)
	c, _ := view.At(7)
	fmt.Println(*c)

	t = view.Begin("user:7")
	view.Forget("user:7")                         // a write begins while Redis is read:
	view.Insert("user:7", t, "Ada", 3, time.Hour) // the value read is not kept
	c, _ = view.At(7)
	fmt.Println(c)

	none := localview.Of[string](mayfly.Namespace[int, string]{Prefix: "user:"}, nil)
	none.Insert("user:7", none.Begin("user:7"), "Ada", 3, time.Hour)
	fmt.Println(none == nil, none.AtFull([]byte("user:7")))
	// Output:
	// Ada
	// <nil>
	// true <nil>
}
