package flight_test

import (
	"context"
	"fmt"

	"github.com/mayflycache/mayfly/internal/client/flight"
)

func Example() {
	var group flight.Group[string]
	f, lead := group.Join("user:7")
	if lead {
		go func() {
			r := <-flight.Go(func() (string, error) { return "Ada", nil })
			f.Land(r.Value, r.Err)
		}()
	}
	fmt.Println(f.Wait(context.Background()))
	// Output: Ada <nil>
}
