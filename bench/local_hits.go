package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/redis/rueidis"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
)

// localHits measures a local hit next to one in rueidis's client-side cache, which keeps replies: to get a
// value, a caller decodes the reply at each hit.
func localHits(w io.Writer, o settings) {
	srv := startRedis()
	defer srv.stop()
	rdb, ctx := tuned(srv.addr), context.Background()
	defer rdb.Close()
	text := must(json.Marshal(anArticle))
	must(rdb.Set(ctx, "raw:7", text, time.Hour).Result())

	near := must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.addr}}))
	defer near.Close()
	reply := func() []byte {
		return must(near.DoCache(ctx, near.B().Get().Key("raw:7").Cache(), time.Hour).AsBytes())
	}

	local := must(mayfly.OpenLocal(ctx, mayfly.LocalOptions{Redis: rdb, MaxEntries: 1000, Prefixes: []string{"cache:"}}))
	defer local.Close(ctx)
	typed := must(cacheaside.New(mayfly.Namespace[int, article]{Name: "articles", Redis: rdb, Prefix: "cache:article:", TTL: time.Hour, Local: local},
		func(context.Context, int) (article, error) { return anArticle, nil }, cacheaside.Options{}))
	raw := must(cacheaside.New(mayfly.Namespace[int, []byte]{Name: "texts", Redis: rdb, Prefix: "cache:text:", TTL: time.Hour, Local: local},
		func(context.Context, int) ([]byte, error) { return text, nil }, cacheaside.Options{}))

	fmt.Fprintf(w, "One hot key of %d bytes of JSON in the process's memory, one caller; the bytes, then the struct.\n\n", len(text))
	tell := func(ways []asked) {
		for _, way := range ways {
			for range 3 { // a load, a hit in Redis that fills the tier, a local hit
				way.get()
			}
		}
		tellPaired(w, ways, o.scale(15, 1), o.scale(400_000, 5000))
	}
	tell([]asked{{"rueidis's client-side cache, bytes", 0, func() {
		if len(reply()) != len(text) {
			panic("another text")
		}
	}}, {"mayfly, bytes", 1, func() {
		if len(must(raw.Get(ctx, 7))) != len(text) {
			panic("another text")
		}
	}}})
	fmt.Fprintln(w)
	tell([]asked{{"rueidis's client-side cache, and decode", 0, func() {
		var a article
		if err := json.Unmarshal(reply(), &a); err != nil || a.ID != 7 {
			panic(err)
		}
	}}, {"mayfly, the struct", 0.05, func() {
		if must(typed.Get(ctx, 7)).ID != 7 {
			panic("another article")
		}
	}}})
	if s := local.Stats(); s.Hits == 0 {
		panic("no local hits")
	}
}
