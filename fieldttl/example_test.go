package fieldttl_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/redistest"
)

// Session is the TTL guide's: the address is forgotten after an hour, for privacy, and the token after a quarter.
type Session struct {
	UserID int64  `redis:"user_id"`
	IP     string `redis:"ip,ttl=1h"`
	CSRF   string `redis:"csrf_token,ttl=15m"`
}

func Example() {
	srv, err := redistest.Run() // stands for the program's Redis
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := srv.Client()
	defer rdb.Close()
	ctx := context.Background()

	sessions, err := fieldttl.New(mayfly.Namespace[string, Session]{Name: "sessions", Redis: rdb, Prefix: "session:", TTL: 24 * time.Hour}, fieldttl.Options{})
	if err != nil {
		panic(err)
	}
	show := func() {
		e, err := sessions.Get(ctx, "abc")
		fmt.Printf("%+v %v %v\n", e.Value, e.Alive("csrf_token"), err)
	}

	fmt.Println(sessions.Set(ctx, "abc", Session{UserID: 1001, IP: "192.168.1.1", CSRF: "xyz123"}))
	show()
	srv.Advance(20 * time.Minute)
	show()
	sessions.SetFields(ctx, "abc", Session{CSRF: "new"}, "csrf_token")
	srv.Advance(41 * time.Minute)
	show()
	srv.Advance(23 * time.Hour)
	show()
	// Output:
	// <nil>
	// {UserID:1001 IP:192.168.1.1 CSRF:xyz123} true <nil>
	// {UserID:1001 IP:192.168.1.1 CSRF:} false <nil>
	// {UserID:1001 IP: CSRF:} false <nil>
	// {UserID:0 IP: CSRF:} false fieldttl: get "session:abc": not found
}

type Basket struct {
	User  int64    `redis:"user"`
	Items []string `redis:"items,ttl=1h"`
}

// Two requests put something into a basket at once: neither is lost.
func ExampleStore_Update() {
	srv, err := redistest.Run() // stands for the program's Redis
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := srv.Client()
	defer rdb.Close()
	ctx := context.Background()

	baskets, err := fieldttl.New(mayfly.Namespace[string, Basket]{Name: "baskets", Redis: rdb, Prefix: "basket:", TTL: 24 * time.Hour}, fieldttl.Options{})
	if err != nil {
		panic(err)
	}
	baskets.Set(ctx, "ada", Basket{User: 1001})
	var requests sync.WaitGroup
	for _, item := range []string{"shoes", "socks"} {
		requests.Go(func() {
			_, err := baskets.Update(ctx, "ada", func(e fieldttl.Entry[Basket]) (Basket, error) {
				e.Value.Items = append(e.Value.Items, item) // again, if the other request was first
				return e.Value, nil
			}, "items")
			fmt.Println(err)
		})
	}
	requests.Wait()
	e, err := baskets.Get(ctx, "ada")
	fmt.Println(e.Value.User, len(e.Value.Items), err)
	// Output:
	// <nil>
	// <nil>
	// 1001 2 <nil>
}
