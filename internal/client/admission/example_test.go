package admission_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/internal/client/admission"
)

func Example() {
	limiter, err := admission.New(admission.Options{Timeout: 2 * time.Second})
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	query := func(context.Context) string { return "Ada" }

	ctx := context.Background()
	permit, err := limiter.Enter(ctx, admission.Wish{Patience: time.Second})
	if err != nil {
		fmt.Println(err) // answer with what is stale, or with an error
		return
	}
	defer permit.Drop()
	fmt.Println(query(permit.Inside(ctx)))
	permit.Done(admission.OK, time.Now())
	fmt.Println(limiter.Stats().InFlight)
	// Output:
	// Ada
	// 0
}
