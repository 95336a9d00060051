package record_test

import (
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/internal/client/record"
)

func Example() {
	rec := record.Begin(nil, record.Header{Format: record.FormatOf("json"), Fresh: time.Minute})
	rec = append(rec, `{"name":"Ada"}`...)
	record.Seal(rec)

	kind, header, body := record.Parse(rec)
	fmt.Println(kind, header.Fresh, string(body))

	kind, _, body = record.Parse([]byte(`{"from":"another program"}`))
	fmt.Println(kind, string(body))
	// Output:
	// value 1m0s {"name":"Ada"}
	// plain {"from":"another program"}
}
