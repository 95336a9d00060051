package rdb_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/redis/rdb"
)

func Example() {
	payload := rdb.Seal(rdb.AppendString([]byte{rdb.TypeString}, []byte("10")))
	fmt.Printf("%x\n", payload) // what DUMP replies in Redis 8 after SET k 10
	r, err := rdb.Open(payload)
	fmt.Println(r.Byte() == rdb.TypeString, string(r.Bytes()), r.Done(), err)
	// Output:
	// 00c00a0c00a5e96385f484fdf2
	// true 10 true <nil>
}
