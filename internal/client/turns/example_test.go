package turns_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/internal/client/turns"
)

func Example() {
	gate := turns.New(1) // of a client with one connection
	line := turns.NewLine(turns.Options{
		Gate:     gate,
		Patience: turns.Patience{Most: time.Second, Silent: 150 * time.Millisecond},
		Send: func(_ context.Context, _ time.Time, _ time.Duration, reads []*turns.Read) error {
			for _, r := range reads { // of one trip
				r.Raw, r.Found, r.Answered = []byte("what is under "+r.Key), true, true
			}
			return nil
		},
		Refused: func() error { return nil }, // as a breaker that is closed says
		Start:   func(f func()) bool { go f(); return true },
		Closed:  errors.New("closed"),
	})
	ctx := context.Background()
	a := line.Ask(ctx, turns.Question{Key: "user:7"}, false, time.Now())
	fmt.Printf("%s, %v\n", a.Raw, a.Err)

	gate.Enter(ctx, line, turns.Patience{}) // as a write does
	_, err := gate.Enter(ctx, line, turns.Patience{Most: time.Millisecond})
	fmt.Println(errors.Is(err, turns.ErrCrowded))
	gate.Leave()
	// Output:
	// what is under user:7, <nil>
	// true
}
