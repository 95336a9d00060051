package mayfly_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/jitter"
)

type user struct{ Name string }

// users is a namespace with nothing wrong in it. Making a client dials nothing.
func users(t testing.TB) mayfly.Namespace[int64, user] {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { rdb.Close() })
	return mayfly.Namespace[int64, user]{Name: "users", Redis: rdb, Prefix: "cache:user:", TTL: time.Hour, Jitter: jitter.Default}
}

func TestAGoodNamespace(t *testing.T) {
	if err := users(t).Validate(); err != nil {
		t.Error(err)
	}
}

// tooLong is memory that nobody touches, so that the system need not have it.
var tooLong = make([]byte, keyform.MaxLen)

func TestBadNamespaces(t *testing.T) {
	type namespace = mayfly.Namespace[int64, user]
	for _, c := range []struct {
		name   string
		damage func(*namespace)
		want   string
	}{
		{"TTL zero", func(n *namespace) { n.TTL = 0 }, "Namespace.TTL must be at least 1ms, got 0s"},
		{"TTL negative", func(n *namespace) { n.TTL = -time.Second }, "Namespace.TTL must be at least 1ms, got -1s"},
		{"TTL under a millisecond", func(n *namespace) { n.TTL = 999 * time.Microsecond }, "Namespace.TTL must be at least 1ms, got 999µs"},
		{"TTL beyond a century", func(n *namespace) { n.TTL = math.MaxInt64 }, "Namespace.TTL must be at most 876000h0m0s (100 years), got 2562047h47m16.854775807s"},
		{"MaxTTL negative", func(n *namespace) { n.MaxTTL = -time.Second }, "Namespace.MaxTTL must be at least 1ms, got -1s"},
		{"MaxTTL under TTL", func(n *namespace) { n.MaxTTL = time.Minute }, "Namespace.MaxTTL 1m0s is shorter than TTL 1h0m0s"},
		{"MaxTTL beyond a century", func(n *namespace) { n.MaxTTL = math.MaxInt64 }, "Namespace.MaxTTL must be at most 876000h0m0s (100 years)"},
		{"no name and no prefix", func(n *namespace) { n.Name, n.Prefix = "", "" }, "Namespace.Prefix and Name are empty"},
		{"a prefix that gives no name", func(n *namespace) { n.Name, n.Prefix = "", "{users}:" }, `Namespace.Name is empty, and no name follows from Prefix "{users}:"`},
		{"a prefix of separators", func(n *namespace) { n.Name, n.Prefix = "", "::" }, `Namespace.Name is empty, and no name follows from Prefix "::"`},
		{"a name that is no label", func(n *namespace) { n.Name = "all users" }, `Namespace.Name must hold only letters, digits, '_', '-' and '.', got "all users"`},
		{"a name that would be our own prefix", func(n *namespace) { n.Name, n.Prefix = "mayfly", "" }, `Namespace.Prefix "mayfly:" leads into "mayfly:"`},
		{"our own prefix", func(n *namespace) { n.Prefix = "mayfly:lock:" }, `Namespace.Prefix "mayfly:lock:" leads into "mayfly:"`},
		{"a prefix a key could complete to ours", func(n *namespace) { n.Prefix = "may" }, `Namespace.Prefix "may" leads into "mayfly:"`},
		{"a prefix no key fits behind", func(n *namespace) { n.Prefix = unsafe.String(unsafe.SliceData(tooLong), len(tooLong)) }, "Namespace.Prefix has 536870912 bytes"},
		{"no client", func(n *namespace) { n.Redis = nil }, "Namespace.Redis is nil"},
		{"a nil client in an interface", func(n *namespace) { n.Redis = (*redis.Client)(nil) }, "Namespace.Redis is nil"},
		{"jitter negative", func(n *namespace) { n.Jitter = jitter.Spread{Fraction: -0.1} }, "Namespace.Jitter.Fraction must be in [0,1), got -0.1"},
		{"jitter of one", func(n *namespace) { n.Jitter = jitter.Spread{Fraction: 1} }, "Namespace.Jitter.Fraction must be in [0,1), got 1"},
		{"jitter NaN", func(n *namespace) { n.Jitter = jitter.Spread{Fraction: math.NaN()} }, "Namespace.Jitter.Fraction must be in [0,1), got NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := users(t)
			c.damage(&n)
			if err := n.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestAKeyTypeWithoutAForm(t *testing.T) {
	good := users(t)
	type point struct{ X, Y int }
	n := mayfly.Namespace[point, user]{Name: "points", Redis: good.Redis, Prefix: "p:", TTL: time.Minute}
	if err := n.Validate(); err == nil || !strings.Contains(err.Error(), "Namespace.Key: a key of type mayfly_test.point has no text") {
		t.Errorf("got error %v", err)
	}
	n.Key = func(p point) string { return "origin" }
	if err := n.Validate(); err != nil {
		t.Error(err)
	}
}

func TestEveryMistakeIsNamedAtOnce(t *testing.T) {
	err := mayfly.Namespace[string, user]{}.Validate()
	for _, field := range []string{"Prefix and Name", "Redis", "TTL"} {
		if err == nil || !strings.Contains(err.Error(), "Namespace."+field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
}

// Name and Prefix follow from one another.
func TestNameAndPrefix(t *testing.T) {
	for _, c := range []struct{ name, prefix, key string }{
		{"users", "", "users:7"}, {"", "users:", "users:7"}, {"", "cache:user:", "cache:user:7"}, {"", "a/b/", "a/b/7"}, {"all", "u-", "u-7"},
	} {
		n := users(t)
		n.Name, n.Prefix = c.name, c.prefix
		if err := n.Validate(); err != nil {
			t.Errorf("%q, %q: %v", c.name, c.prefix, err)
		}
		if got, err := n.FullKey(7); got != c.key || err != nil {
			t.Errorf("%q, %q: the key is %q, %v", c.name, c.prefix, got, err)
		}
	}
}

func TestFullKey(t *testing.T) {
	n := users(t)
	if got, err := n.FullKey(1001); got != "cache:user:1001" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	n.Key = func(int64) string { return "" }
	if _, err := n.FullKey(1001); !errors.Is(err, keyform.ErrEmpty) {
		t.Errorf("a key without text: got error %v", err)
	}
}

func TestTheGuidesStrategiesAreValid(t *testing.T) {
	for name, bounds := range map[string][2]time.Duration{
		"short": {60 * time.Second, 300 * time.Second}, "medium": {time.Hour, 24 * time.Hour}, "long": {24 * time.Hour, 4 * 7 * 24 * time.Hour},
	} {
		for _, ttl := range bounds {
			ns := users(t)
			ns.TTL = ttl
			if err := ns.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestMust(t *testing.T) {
	if got := mayfly.Must(7, nil); got != 7 {
		t.Errorf("Must(7, nil) = %d", got)
	}
	defer func() {
		if r := recover(); r != error(mayfly.ErrClosed) {
			t.Errorf("Must panicked with %v", r)
		}
	}()
	mayfly.Must(0, mayfly.ErrClosed)
}
