package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/keyspace"
)

type secret struct{ a int }

var _ = secret{}.a

func namespace[V any](rdb redis.UniversalClient) mayfly.Namespace[string, V] {
	return mayfly.Namespace[string, V]{Name: "things", Redis: rdb, Prefix: "thing:", TTL: time.Hour}
}

func client(t *testing.T) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// A prefix that others' keys may resemble is used, and reported once.
func TestAPrefixWithoutASeparatorIsAWarning(t *testing.T) {
	for prefix, warns := range map[string]bool{"cart": true, "cart:v2": true, "caché": true, "cart:": false, "cart/": false, "cart-": false, "cart.": false, "{cart}": false, "cart_": false} {
		var told []mayfly.Event
		ns := namespace[int](client(t))
		ns.Prefix = prefix
		ns.Observer = mayfly.ObserverFunc(func(_ context.Context, e mayfly.Event) { told = append(told, e) })
		if _, c := keyspace.Of("pattern", ns); c.Err() != nil {
			t.Error(c.Err())
		}
		if (len(told) == 1) != warns || warns && (told[0].Kind != mayfly.KindWarning || told[0].Namespace != "things" || !strings.Contains(told[0].Err.Error(), prefix)) {
			t.Errorf("%q: %+v", prefix, told)
		}
	}
}

func TestAValueThatTheCodecCannotCarry(t *testing.T) {
	refused := func(c interface{ Err() error }, says string) {
		t.Helper()
		if err := c.Err(); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	rdb := client(t)
	_, c := keyspace.Of("pattern", namespace[chan int](rdb))
	refused(c, "pattern: Namespace.Codec: JSON cannot carry a chan int: a chan int has no text")
	_, c = keyspace.Of("pattern", namespace[secret](rdb))
	refused(c, "a client_test.secret comes back empty")
	ns := namespace[secret](rdb)
	ns.Codec = mayfly.JSON[secret]{Schema: 2}
	_, c = keyspace.Of("pattern", ns)
	refused(c, "comes back empty")
	ns.Codec = own{}
	_, c = keyspace.Of("pattern", ns)
	refused(c, "")
	_, c = keyspace.Of("pattern", namespace[struct{}](rdb))
	refused(c, "")
	_, c = keyspace.OwnForm("pattern", namespace[chan int](rdb), "it has its own")
	refused(c, "")
	ns.Plain, ns.Clone, ns.Cost = true, func(s secret) secret { return s }, func(secret) int { return 1 }
	_, c = keyspace.OwnForm("pattern", ns, "it has its own")
	for _, says := range []string{"Namespace.Codec must be nil: it has its own", "Namespace.Plain must be false: it", "Namespace.Clone must be nil", "Namespace.Cost must be nil"} {
		refused(c, says)
	}
}

// own is a codec of somebody's own.
type own struct{}

func (own) Append(dst []byte, _ secret) ([]byte, error) { return dst, nil }
func (own) Decode([]byte) (secret, error)               { return secret{}, nil }
func (own) Format() string                              { return "own" }

// An error names the key as Redis knows it, and one without a name there as the caller wrote it.
func TestErrorsNameTheKeyInRedis(t *testing.T) {
	room, c := keyspace.Of("pattern", namespace[int](client(t)))
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	_, nameless := room.FullKeys("delete", []string{"ada", ""})
	for want, err := range map[string]error{
		`pattern: get "thing:ada": closed`:     room.Do("get", "ada", func(string) error { return mayfly.ErrClosed }),
		`pattern: touch "thing:ada": closed`:   room.Fail("touch", "thing:ada", mayfly.ErrClosed),
		`pattern: get "": the key is empty`:    room.Do("get", "", func(string) error { return nil }),
		`pattern: delete "": the key is empty`: nameless,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := room.Do("get", "ada", func(string) error { return nil }); err != nil {
		t.Error(err)
	}
}
