package script_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/script"
)

func TestMachinesShareAScript(t *testing.T) {
	const source = "local n = 0 for i = 1, 100 do n = n + #(KEYS[1] .. i) end return {n, pcall(function() return KEYS[1] end)}"
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			chunk, err := script.Compile("shared", source)
			if err != nil {
				t.Error(err)
				return
			}
			m, key := script.NewMachine(echo{}), fmt.Sprint("key:", i)
			for range 20 {
				run := m.Start(chunk, [][]byte{[]byte(key)}, nil)
				for !run.Step() {
				}
				var out resp.Writer
				run.Reply(&out)
				if want := "*3\r\n:692\r\n:1\r\n$5\r\n" + key + "\r\n"; string(out.Bytes()) != want {
					t.Errorf("got %q, want %q", out.Bytes(), want)
				}
			}
		})
	}
	all.Wait()

	compile := func(sum, source string) *script.Chunk {
		c, err := script.Compile(sum, source)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := compile("shared", source)
	if compile("shared", source) != first {
		t.Error("the same script was compiled twice")
	}
	if other := compile("shared", "return 1"); other == first || other.Source != "return 1" {
		t.Errorf("another script with the same sum: got %q", other.Source)
	}
	compile("shared", source)
	for i := range 10 {
		compile(fmt.Sprint("filler", i), fmt.Sprintf("return %d --%s", i, strings.Repeat("x", 60<<10)))
	}
	if held := script.Shared(); held > 256<<10 {
		t.Errorf("%d bytes of source are held", held)
	}
}
