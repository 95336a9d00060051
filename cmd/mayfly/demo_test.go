package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, complaints bytes.Buffer
		if code := run(t.Context(), []string{"demo", "--shoppers", "120", "--pause", "100ms"}, &out, &complaints); code != 0 {
			t.Fatalf("exit %d: %s", code, &complaints)
		}
		figures := func(way string) (looks, queries, most int) {
			_, row, ok := strings.Cut(out.String(), "\n"+way)
			if !ok {
				t.Fatalf("no row %q in\n%s", way, &out)
			}
			if _, err := fmt.Sscan(row, &looks, &queries, &most); err != nil {
				t.Fatal(err)
			}
			return
		}
		_, plain, plainMost := figures(ways[0].name)
		_, ours, oursMost := figures(ways[1].name)
		if ours == 0 || plain < 10*ours || plainMost < 100 || oursMost != 1 {
			t.Errorf("the demo does not show what it is for:\n%s", &out)
		}
	})
}

func TestDemoRefuses(t *testing.T) {
	for _, args := range []string{"--shoppers=0", "--shoppers=10001", "--ttl=0s", "--for=-1s", "--query=1us", "--color", "now"} {
		var out, complaints bytes.Buffer
		if code := run(t.Context(), []string{"demo", args}, &out, &complaints); code != 2 || !strings.Contains(complaints.String(), strings.TrimLeft(strings.Split(args, "=")[0], "-")) {
			t.Errorf("%s: exit %d, %q", args, code, &complaints)
		}
	}
}
