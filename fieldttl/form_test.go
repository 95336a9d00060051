package fieldttl_test

import (
	"math"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/diff"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

type colour string

type embedded struct {
	Inner uint8 `redis:"inner"`
}

type address struct {
	Street string
	Tags   []string
}

// forms has a field of every form.
type forms struct {
	embedded
	Text     string         `redis:"text,ttl=1h"`
	Colour   colour         `redis:"colour"`
	Bytes    []byte         `redis:"bytes"`
	Bool     bool           `redis:"bool"`
	Int      int            `redis:"int"`
	Int8     int8           `redis:"int8"`
	Int64    int64          `redis:"int64,ttl=1m"`
	Uint64   uint64         `redis:"uint64"`
	Float32  float32        `redis:"float32"`
	Float64  float64        `redis:"float64"`
	Duration time.Duration  `redis:"duration"`
	Time     time.Time      `redis:"time,ttl=1m"`
	Addr     netip.Addr     `redis:"addr"`
	Big      *big.Int       `redis:"big"`
	When     *time.Time     `redis:"when"`
	Struct   address        `redis:"struct"`
	Pointer  *address       `redis:"pointer"`
	Map      map[string]int `redis:"map"`
	List     []int          `redis:"list,ttl=1h"`
	Array    [2]bool        `redis:"array"`
	Any      any            `redis:"any"`
	Left     chan int       `redis:"-"`
	_        int
}

// sameTime compares times with their zones, and then makes got the same value as want: each has a zone of its own in memory.
func sameTime(t *testing.T, want, got *time.Time) {
	t.Helper()
	if want == nil || got == nil {
		if want != got {
			t.Errorf("got the time %v, want %v", got, want)
		}
		return
	}
	if d := diff.Of(want.Format(time.RFC3339Nano), got.Format(time.RFC3339Nano)); d != "" {
		t.Error(d)
	}
	*got = *want
}

func everyForm(t *testing.T, o opened) {
	s, ctx := store[forms](t, o), t.Context()
	when := time.Date(2026, 11, 21, 8, 0, 0, 123456789, time.FixedZone("", 3600))
	for _, want := range []forms{
		{
			embedded: embedded{255}, Text: "a\x00\r\n\xff", Colour: "red", Bytes: []byte{0, 255}, Bool: true, Int: math.MinInt, Int8: -128, Int64: math.MaxInt64,
			Uint64: math.MaxUint64, Float32: math.MaxFloat32, Float64: math.SmallestNonzeroFloat64, Duration: -time.Nanosecond, Time: when,
			Addr: netip.MustParseAddr("2001:db8::1"), Big: new(big.Int).Lsh(big.NewInt(1), 200), When: &when,
			Struct: address{"<A & B>", []string{"x"}}, Pointer: &address{}, Map: map[string]int{"a": 1}, List: []int{1, 2}, Array: [2]bool{true, false}, Any: "any",
		},
		{Bytes: []byte{}}, // zeros
	} {
		expect.OK(t, s.Set(ctx, "a", want))
		e := expect.Value(s.Get(ctx, "a"))(t)
		sameTime(t, &want.Time, &e.Value.Time)
		sameTime(t, want.When, e.Value.When)
		if d := diff.Of(want, e.Value); d != "" {
			t.Errorf("what was set and what was read differ:\n%.2000s", d)
		}
		if !e.Alive("inner") || !e.Alive("any") || e.Alive("Left") {
			t.Error("Alive is wrong")
		}
	}

	// go-redis reads what it can read, from the same hash.
	type plain struct {
		Text     string        `redis:"text"`
		Bool     bool          `redis:"bool"`
		Int8     int8          `redis:"int8"`
		Float32  float32       `redis:"float32"`
		Time     time.Time     `redis:"time"`
		Duration time.Duration `redis:"duration"`
	}
	expect.OK(t, s.Set(ctx, "a", forms{Text: "t", Bool: true, Int8: -1, Float32: 1.5, Time: when, Duration: time.Second}))
	var got plain
	expect.OK(t, o.rdb.HGetAll(ctx, ns[forms](t, o.rdb).Prefix+"a").Scan(&got))
	if !got.Time.Equal(when) || got.Text != "t" || !got.Bool || got.Int8 != -1 || got.Float32 != 1.5 || got.Duration != time.Second {
		t.Errorf("go-redis reads %+v", got)
	}
}
