package client_test

import (
	"context"
	"fmt"

	"github.com/mayflycache/mayfly/internal/client/flight"
)

func Example_flight() {
	var group flight.Group[string]
	began := group.Now()
	f, lead := group.Join("user:7", began)
	if lead {
		go func() {
			f.Reads()
			r := <-flight.Go(func() (string, error) { return "Ada", nil })
			f.Land(r.Value, r.Err)
		}()
	}
	fmt.Println(f.Wait(context.Background(), began))
	// Output: Ada false <nil>
}
