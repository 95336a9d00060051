package journal_test

import (
	"fmt"
	"os"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/journal"
)

func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	now := func() int64 { return time.Now().UnixMicro() }

	e := engine.New(engine.Options{})
	j, _, err := journal.Open(journal.Options{Dir: dir}, e, now)
	if err != nil {
		panic(err)
	}
	s := e.NewSession(engine.SessionOptions{Now: now()})
	e.Do(now(), s, [][]byte{[]byte("SET"), []byte("k"), []byte("v"), []byte("EX"), []byte("100")})
	j.Close()

	_, report, err := journal.Open(journal.Options{Dir: dir}, engine.New(engine.Options{}), now)
	fmt.Println(report.Keys, err)
	// Output: 1 <nil>
}
