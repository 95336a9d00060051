package script_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/script"
)

// echo is a host that replies with a command's name, or with the list that the name is.
type echo struct{}

func (echo) Version() string   { return "8.0.2" }
func (echo) Has([][]byte) bool { return true }
func (echo) SetProto(int)      {}
func (echo) Call(args [][]byte) []byte {
	switch {
	case args[0][0] == '*':
		return args[0]
	case string(args[0]) == "ECHO":
		return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(args[1]), args[1])
	}
	return []byte("+" + string(args[0]) + "\r\n")
}

func Example() {
	chunk, err := script.Compile("sum", "local r = redis.call('ping') return {r.ok, KEYS[1], cjson.encode({1, 2})}")
	if err != nil {
		panic(err)
	}
	run := script.NewMachine(echo{}).Start(chunk, [][]byte{[]byte("key")}, nil)
	for !run.Step() {
	}
	var out resp.Writer
	run.Reply(&out)
	fmt.Printf("%q\n", out.Bytes())
	// Output: "*3\r\n$4\r\nping\r\n$3\r\nkey\r\n$5\r\n[1,2]\r\n"
}
