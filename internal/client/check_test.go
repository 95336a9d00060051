package client_test

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/check"
)

type (
	hidden  struct{ a int }
	blank   struct{ _ struct{} }
	byValue struct{ a int }
	byAddr  struct{ a int }
	node    struct{ Next, Other *node }
	locked  struct {
		sync.Mutex
		Name string
	}
	embeds struct{ inner }
	inner  struct{ Name string }
	point  struct{ X, Y int }
)

var _ = []int{hidden{}.a, byValue{}.a, byAddr{}.a}

func (byValue) MarshalJSON() ([]byte, error) { return []byte("1"), nil }
func (*byAddr) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

func TestWhatJSONCannotCarry(t *testing.T) {
	for _, v := range []struct {
		t    reflect.Type
		says string // empty: it can
	}{
		{reflect.TypeFor[chan int](), "a chan int has no text"},
		{reflect.TypeFor[func()](), "a func() has no text"},
		{reflect.TypeFor[complex64](), "a complex64 has no text"},
		{reflect.TypeFor[[]complex128](), "a complex128 has no text"},
		{reflect.TypeFor[map[string]chan int](), "a chan int has no text"},
		{reflect.TypeFor[error](), "a error cannot be read back"},
		{reflect.TypeFor[hidden](), "a client_test.hidden comes back empty"},
		{reflect.TypeFor[*hidden](), "a client_test.hidden comes back empty"},
		{reflect.TypeFor[[3]hidden](), "a client_test.hidden comes back empty"},
		{reflect.TypeFor[struct{ Count atomic.Int64 }](), "a atomic.Int64 comes back empty: it has no exported field, and no MarshalJSON method with a value receiver (field struct"},
		{reflect.TypeFor[struct{ hidden }](), "comes back empty"},
		{reflect.TypeFor[byAddr](), "a client_test.byAddr comes back empty"}, // the method is not called of a value
		{reflect.TypeFor[struct{ N big.Int }](), "a big.Int comes back empty"},
		{reflect.TypeFor[map[int]byAddr](), "comes back empty"},
		{reflect.TypeFor[map[point]int](), "a map[client_test.point]int has keys without a text, client_test.point"},
		{reflect.TypeFor[map[float64]int](), "without a text, float64"},
		{reflect.TypeFor[struct {
			A struct{ B struct{ C func() } }
		}](), "a func() has no text (field struct { C func() }.C)"},
		{reflect.TypeFor[embedsAFunc](), "a func() has no text (field client_test.hasAFunc.F)"},

		{t: reflect.TypeFor[struct{}]()},
		{t: reflect.TypeFor[blank]()},
		{t: reflect.TypeFor[int]()},
		{t: reflect.TypeFor[uintptr]()},
		{t: reflect.TypeFor[any]()},
		{t: reflect.TypeFor[map[string]any]()},
		{t: reflect.TypeFor[map[netip.Addr][]byte]()},
		{t: reflect.TypeFor[byValue]()},
		{t: reflect.TypeFor[*byAddr]()},
		{t: reflect.TypeFor[[]byAddr]()},
		{t: reflect.TypeFor[node]()},
		{t: reflect.TypeFor[locked]()},
		{t: reflect.TypeFor[embeds]()},
		{t: reflect.TypeFor[*embeds]()},
		{t: reflect.TypeFor[time.Time]()},
		{t: reflect.TypeFor[*big.Int]()},
		{t: reflect.TypeFor[url.URL]()},
		{t: reflect.TypeFor[json.RawMessage]()},
		{t: reflect.TypeFor[struct {
			Done chan int `json:"-"`
			c    chan int
			Name string
		}]()},
	} {
		err := check.JSON(v.t, false)
		if (err == nil) != (v.says == "") || err != nil && !strings.Contains(err.Error(), v.says) {
			t.Errorf("%v: %v", v.t, err)
		}
		// encoding/json agrees: types that pass are written, and read again.
		if text, err := json.Marshal(reflect.Zero(v.t).Interface()); v.says == "" {
			if err == nil && text != nil && string(text) != "1" {
				err = json.Unmarshal(text, reflect.New(v.t).Interface())
			}
			if err != nil {
				t.Errorf("%v: %v", v.t, err)
			}
		}
	}
	if err := check.JSON(reflect.TypeFor[byAddr](), true); err != nil {
		t.Errorf("behind a pointer: %v", err)
	}
}

type (
	hasAFunc    struct{ F func() }
	embedsAFunc struct{ hasAFunc }
)
