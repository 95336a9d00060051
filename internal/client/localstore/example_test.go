package localstore_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/client/localstore"
)

func Example() {
	store, err := localstore.New(localstore.Options{MaxBytes: 1 << 20})
	if err != nil {
		panic(err)
	}
	type user struct{ Name string }
	users, pages := localstore.NewValues[*user](store), localstore.NewValues[string](store)

	const now = 1_000_000 // unix ms
	users.Set("user:7", &user{"Ada"}, 64, now+60_000, now)
	pages.Set("page:/", "<h1>", 4, now+1000, now)

	u, deadline, ok := users.Get("user:7", now+2000)
	fmt.Println(u.Name, deadline-now, ok)

	_, _, ok = pages.Get("page:/", now+2000)
	fmt.Println(ok, store.Len(), store.Reap(now+2000, 10), store.Len())
	// Output:
	// Ada 60000 true
	// false 2 1 1
}
