package ttlaudit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/ttlaudit"
)

// An audit finds the keys without TTL, and Fix gives one to those that a plan names.
func Example() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)
	rdb := db.Client()
	for i := range 100 {
		rdb.Set(ctx, fmt.Sprintf("cache:user:%d", i), "v", time.Hour)
		rdb.Set(ctx, fmt.Sprintf("session:%d", i), "v", 0)
	}
	rdb.Set(ctx, "config", "v", 0)

	report, err := ttlaudit.Run(ctx, rdb, ttlaudit.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.NoTTL, "of", report.Keys, "keys have no TTL")
	for _, p := range report.Patterns {
		fmt.Println(p.Name, p.NoTTL)
	}

	plan := ttlaudit.Plan{Give: []ttlaudit.Give{{Pattern: "session:*", TTL: 24 * time.Hour}}, Apply: true}
	fixed, err := ttlaudit.Fix(ctx, rdb, plan)
	if err != nil {
		panic(err)
	}
	fmt.Println(fixed.Gives[0].Given, "were given one")
	// Output:
	// 101 of 201 keys have no TTL
	// session:* 100
	// config 1
	// cache:user:* 0
	// 100 were given one
}
