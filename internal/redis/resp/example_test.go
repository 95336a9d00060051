package resp_test

import (
	"fmt"
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

func Example() {
	var p resp.Parser
	var w resp.Writer
	conn := strings.NewReader("*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\nPING\r\n")
	p.Fill(conn)
	for {
		args, err := p.Next()
		if args == nil || err != nil {
			break
		}
		if string(args[0]) == "PING" {
			w.Simple("PONG")
		} else {
			w.Bulk(args[1])
		}
	}
	fmt.Printf("%q\n", w.Bytes())
	// Output: "$5\r\nhello\r\n+PONG\r\n"
}
