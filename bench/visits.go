package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/navsession"
)

const howMeasured = `One caller, real Redis 8. CPU time per call, of this process and with the
server's, median of rounds in which the ways take turns of 250 calls; the ratio is the median of those in one round.`

// visitCosts measures what a page view costs beside the documentation's transaction by hand.
func visitCosts(w io.Writer, o settings) {
	server := startRedis()
	defer server.stop()
	rdb := server.client()
	defer rdb.Close()

	const pages = 20
	page := navsession.Page{URL: "/shoes/7", Title: "A shoe", Time: time.Now()}
	visits := mayfly.Must(navsession.New(mayfly.Namespace[int64, navsession.Page]{
		Name: "visits", Redis: rdb, Prefix: "a:user:", TTL: time.Minute,
	}, navsession.Options{Pages: pages}))
	counter := mayfly.Must(navsession.NewCounter(mayfly.Namespace[int64, int64]{Name: "visits", Redis: rdb, Prefix: "c:user:", TTL: time.Minute}, navsession.CounterOptions{}))

	fmt.Fprintln(w, "A page of 80 bytes, JSON, the latest 20 kept, pages of one visit. "+howMeasured)
	fmt.Fprintln(w, "Counter.Record sends a PEXPIRETIME more than is sent by hand, as the first page of a visit does.")
	fmt.Fprintln(w)
	compete(w, o, server, []way{
		{"TxPipeline by hand: RPUSH, LTRIM, PEXPIRE", 0, func(ctx context.Context) error {
			key := "b:user:" + strconv.FormatInt(1001, 10)
			raw, err := json.Marshal(page)
			if err != nil {
				return err
			}
			pipe := rdb.TxPipeline()
			pipe.RPush(ctx, key, raw)
			pipe.LTrim(ctx, key, -pages, -1)
			pipe.PExpire(ctx, key, time.Minute)
			_, err = pipe.Exec(ctx)
			return err
		}},
		{"navsession.Visits.Record", 1.05, func(ctx context.Context) error { return visits.Record(ctx, 1001, page) }},
	})
	compete(w, o, server, []way{
		{"TxPipeline by hand: INCR, PEXPIRE", 0, func(ctx context.Context) error {
			key := "d:user:" + strconv.FormatInt(1001, 10)
			pipe := rdb.TxPipeline()
			pipe.Incr(ctx, key)
			pipe.PExpire(ctx, key, time.Minute)
			_, err := pipe.Exec(ctx)
			return err
		}},
		{"navsession.Counter.Record", 0, func(ctx context.Context) error { _, err := counter.Record(ctx, 1001); return err }},
	})
}

// fieldCosts measures what a struct in a hash costs beside HGETALL and decoding by hand.
func fieldCosts(w io.Writer, o settings) {
	server := startRedis()
	defer server.stop()
	rdb := server.client()
	defer rdb.Close()
	ctx := context.Background()

	type session struct {
		UserID int64     `redis:"user_id"`
		Name   string    `redis:"name"`
		Admin  bool      `redis:"admin"`
		Seen   time.Time `redis:"seen"`
		IP     string    `redis:"ip,ttl=1h"`
		CSRF   string    `redis:"csrf_token,ttl=15m"`
	}
	value := session{1001, "Ada Lovelace", true, time.Now().UTC().Truncate(0), "192.168.1.1", "xyz123"}
	store := mayfly.Must(fieldttl.New(mayfly.Namespace[int64, session]{Name: "sessions", Redis: rdb, Prefix: "session:", TTL: 24 * time.Hour}, fieldttl.Options{}))
	if err := store.Set(ctx, 1001, value); err != nil {
		panic(err)
	}
	byHand := func(ctx context.Context) (s session, err error) {
		m, err := rdb.HGetAll(ctx, "session:"+strconv.FormatInt(1001, 10)).Result()
		if err != nil {
			return s, err
		}
		if s.UserID, err = strconv.ParseInt(m["user_id"], 10, 64); err != nil {
			return s, err
		}
		if s.Admin, err = strconv.ParseBool(m["admin"]); err != nil {
			return s, err
		}
		if s.Seen, err = time.Parse(time.RFC3339Nano, m["seen"]); err != nil {
			return s, err
		}
		s.Name, s.IP, s.CSRF = m["name"], m["ip"], m["csrf_token"]
		return s, nil
	}
	if got := must(byHand(ctx)); got != value || must(store.Get(ctx, 1001)).Value != value {
		panic(fmt.Sprintf("read %+v", got))
	}

	fmt.Fprintln(w, "A struct of six fields, two of them with a TTL. "+howMeasured)
	fmt.Fprintln(w)
	compete(w, o, server, []way{
		{"HGETALL, decoded by hand", 0, func(ctx context.Context) error { _, err := byHand(ctx); return err }},
		{"fieldttl.Get", 1.1, func(ctx context.Context) error { _, err := store.Get(ctx, 1001); return err }},
		{"HGETALL, decoded by go-redis's Scan", 0, func(ctx context.Context) error {
			var s session
			return rdb.HGetAll(ctx, "session:"+strconv.FormatInt(1001, 10)).Scan(&s)
		}},
	})
	compete(w, o, server, []way{
		{"TxPipeline by hand: HSET, HPEXPIRE twice, PEXPIRE", 0, func(ctx context.Context) error {
			key := "b:" + strconv.FormatInt(1001, 10)
			pipe := rdb.TxPipeline()
			pipe.HSet(ctx, key, "user_id", value.UserID, "name", value.Name, "admin", value.Admin, "seen", value.Seen, "ip", value.IP, "csrf_token", value.CSRF)
			pipe.HPExpire(ctx, key, time.Hour, "ip")
			pipe.HPExpire(ctx, key, 15*time.Minute, "csrf_token")
			pipe.PExpire(ctx, key, 24*time.Hour)
			_, err := pipe.Exec(ctx)
			return err
		}},
		{"fieldttl.Set", 0, func(ctx context.Context) error { return store.Set(ctx, 1001, value) }},
		{"fieldttl.TouchFields", 0, func(ctx context.Context) error { return store.TouchFields(ctx, 1001, "csrf_token") }},
	})
}
