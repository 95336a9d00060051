package lease_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// off returns the difference between the end in key's record and the end by PTTL and TIME.
func off(t *testing.T, rdb redis.UniversalClient, key string) time.Duration {
	t.Helper()
	raw, err := rdb.Get(t.Context(), key).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	_, h, _ := record.Parse(raw)
	if h.Ends == 0 {
		t.Fatalf("%q tells no end", key)
	}
	now := rdb.Time(t.Context()).Val()
	if _, is := rdb.(*redis.ClusterClient); is { // which asks any of its servers, all of this machine
		now = time.Now()
	}
	return time.UnixMilli(h.Ends).Sub(now) - rdb.PTTL(t.Context(), key).Val()
}

// A fill, a renewal and a Set write into a record when it ends.
func aRecordTellsWhenItEnds(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	if o.Plain {
		t.Skip("a plain value has no room for it")
	}
	g, ctx := lease.New(o), t.Context()
	g.Delete(ctx, []string{"ends", "set"})
	const near = 200 * time.Millisecond
	write := func(c *lease.Claim, body string) {
		t.Helper()
		if f := g.FillMany(ctx, []lease.Fill{{Claim: c, Value: value(o, c.ID(), body), TTL: time.Hour, Ends: true}})[0]; !f.Stored || f.Err != nil {
			t.Fatalf("%+v", f)
		}
	}
	write(claim(t, g, "ends", lease.Found{}), "filled")
	seen := look(t, g, "ends")
	if d := off(t, rdb, "ends"); d.Abs() > near || string(seen.Body) != "filled" || seen.Header.Fresh != time.Minute {
		t.Errorf("a fill is off by %v, and is %+v", d, seen)
	}
	write(g.Renew(ctx, "ends", seen).Claim, "renewed")
	if d := off(t, rdb, "ends"); d.Abs() > near || string(look(t, g, "ends").Body) != "renewed" {
		t.Errorf("a renewal is off by %v", d)
	}
	for _, err := range g.Set(ctx, []lease.Value{{Key: "set", Bytes: value(o, record.NewID(), "set"), TTL: time.Hour, Ends: true}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if d := off(t, rdb, "set"); d.Abs() > near {
		t.Errorf("a Set is off by %v", d)
	}
}

// Without permission for TIME, a record is stored without its end, and PTTL is sent.
func TestAUserWhoMayNotAskForTheTime(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	if err := srv.Client().Do(t.Context(), "acl", "setuser", "timeless", "on", ">secret", "~*", "+@all", "-time").Err(); err != nil {
		t.Fatal(err)
	}
	o := srv.Options()
	o.Username, o.Password = "timeless", "secret"
	rdb := redis.NewClient(o)
	defer rdb.Close()
	g := lease.New(lease.Options{Redis: rdb, Timeout: 5 * time.Second})
	c := claim(t, g, "k", lease.Found{})
	if f := g.FillMany(t.Context(), []lease.Fill{{Claim: c, Value: value(lease.Options{}, c.ID(), "v"), TTL: time.Hour, Ends: true}})[0]; !f.Stored || f.Err != nil {
		t.Fatalf("%+v", f)
	}
	if err := g.Set(t.Context(), []lease.Value{{Key: "set", Bytes: value(lease.Options{}, c.ID(), "v"), TTL: time.Hour, Ends: true}})[0]; err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k", "set"} {
		for range 2 {
			if f, err := g.Glance(t.Context(), key); err != nil || f.Header.Ends != 0 || f.Left < 59*time.Minute || string(f.Body) != "v" {
				t.Errorf("%s: %+v, %v", key, f, err)
			}
		}
	}
}
