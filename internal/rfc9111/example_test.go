package rfc9111_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

func Example() {
	rules := rfc9111.Rules{Validate: time.Hour}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	request, _ := http.NewRequest("GET", "http://example.com/news", nil)

	key, _ := rfc9111.Keys{}.Key(request)
	policy, reason := rules.Judge(rfc9111.Exchange{Request: request, Status: 200, Sent: noon, Received: noon, Header: http.Header{
		"Cache-Control": {"max-age=60, stale-while-revalidate=30"}, "Etag": {`"v1"`},
	}})
	fmt.Printf("%s %q, for %v\n", key, reason, policy.Keep(noon))

	anything := rfc9111.ParseCacheControl(http.Header{})
	for _, s := range []int{59, 60, 90} {
		verdict := policy.Decide(anything, noon.Add(time.Duration(s)*time.Second))
		fmt.Println(s, verdict == rfc9111.Serve, verdict == rfc9111.Renew, verdict == rfc9111.Revalidate)
	}
	// Output:
	// http://example.com/news "", for 1h1m0s
	// 59 true false false
	// 60 false true false
	// 90 false false true
}
