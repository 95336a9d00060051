package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
)

// unread is a response that nobody reads.
type unread struct{ header http.Header }

func (u unread) Header() http.Header         { return u.header }
func (u unread) Write(b []byte) (int, error) { return len(b), nil }

func (u unread) WriteHeader(status int) {
	if status != http.StatusOK {
		panic(status)
	}
}

// demoCosts measures what the demo promises: that a cached page costs a tenth of its handler, and that a newcomer need not wait.
func demoCosts(w io.Writer, o settings) {
	ctx := context.Background()
	db := must(embedded.Open(embedded.Options{}))
	defer db.Close(ctx)
	set := panel.Default
	set.Mayfly, set.Shoppers, set.Processes, set.Query, set.TTL = true, 0, 1, time.Millisecond, time.Hour
	open := func(pages, local bool) *shop.Shop {
		set.Pages, set.Local = pages, local
		return must(shop.Open(ctx, shop.Options{Redis: db.Client().Options(), Settings: set}))
	}
	ways := []struct {
		name  string
		shop  *shop.Shop
		bound float64
		spent []float64
	}{
		{"a handler, its product a local copy", open(false, true), 0, nil},
		{"decorated by httpcache, local copies", open(true, true), 0.1, nil},
		{"a handler, its product in Redis", open(false, false), 0, nil},
		{"decorated by httpcache, in Redis", open(true, false), 0.1, nil},
	}
	rounds, turn := o.scale(11, 3), o.scale(5000, 1000)
	for range rounds {
		for i := range ways {
			r := must(http.NewRequest("GET", "http://shop.example/product/1", nil))
			before := cpuTime()
			for range turn {
				ways[i].shop.ServeHTTP(unread{make(http.Header)}, r)
			}
			ways[i].spent = append(ways[i].spent, float64(cpuTime()-before)/float64(turn))
		}
	}
	fmt.Fprintf(w, "The demo's product page, %d requests in turn, CPU time of the whole process, the embedded Redis and the request itself included;\nmedian of %d rounds, and of the ratios within a round. A kept page is made anew each second.\n\n", turn, rounds)
	fmt.Fprintln(w, "| | a page | x its handler | bound |\n| --- | --- | --- | --- |")
	for i, way := range ways {
		bound := "-"
		if way.bound > 0 {
			bound = fmt.Sprint(way.bound)
		}
		fmt.Fprintf(w, "| %s | %.1f us | %s | %s |\n", way.name, median(way.spent)/1e3, verdict(ratio(way.spent, ways[i&^1].spent), way.bound, false), bound)
		way.shop.Close(ctx)
	}

	dir := must(os.MkdirTemp("", "mayfly-demo-"))
	defer os.RemoveAll(dir)
	size := func(flags ...string) float64 {
		out := filepath.Join(dir, "mayfly")
		cmd := exec.Command("go", append(append([]string{"build", "-o", out}, flags...), "./cmd/mayfly")...)
		cmd.Dir, cmd.Stderr = "..", os.Stderr
		if err := cmd.Run(); err != nil {
			panic(err)
		}
		return float64(must(os.Stat(out)).Size()) / 1e6
	}
	var page int64
	for _, file := range must(filepath.Glob("../internal/demo/dashboard/page.*")) {
		page += must(os.Stat(file)).Size()
	}
	cold := "not measured"
	if !o.quick {
		cmd := exec.Command("go", "run", "./cmd/mayfly", "version")
		cmd.Dir, cmd.Stderr = "..", os.Stderr
		cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, "cache"))
		begun := time.Now()
		if err := cmd.Run(); err != nil {
			panic(err)
		}
		cold = time.Since(begun).Round(time.Second / 10).String()
	}
	fmt.Fprintf(w, "\n| | | bound |\n| --- | --- | --- |\n")
	fmt.Fprintf(w, "| the program as go install makes it | %.1f MB | 30 MB |\n", size())
	fmt.Fprintf(w, "| the same, stripped: -ldflags='-s -w' | %.1f MB | 30 MB |\n", size("-ldflags=-s -w"))
	fmt.Fprintf(w, "| the dashboard's page, all of it | %.1f KiB | 100 KiB |\n", float64(page)/1024)
	fmt.Fprintf(w, "| go run with an empty build cache, to the first line | %s | 90s |\n", cold)
}
