package sliding_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/sliding"
)

// inPlace is a codec that takes the buffer at its word: it decodes where the bytes are.
type inPlace struct{ mayfly.JSON[cart] }

func (c inPlace) Append(dst []byte, v cart) ([]byte, error) {
	before := len(dst)
	dst, err := c.JSON.Append(dst, v)
	invert(dst[before:])
	return dst, err
}

func (c inPlace) Decode(src []byte) (cart, error) {
	invert(src)
	return c.JSON.Decode(src)
}

func invert(b []byte) {
	for i := range b {
		b[i] ^= 0xff
	}
}

// A codec may decode in place, as one that decrypts does: no call uses the bytes after that.
func TestACodecThatDecodesInPlace(t *testing.T) {
	backends.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for name, o := range map[string]sliding.Options{
			"":        {},
			"seldom":  {TouchBelow: 0.999},
			"aged":    {MaxAge: 24 * time.Hour},
			"plain":   {},
			"foreign": {},
		} {
			ns := namespace(rdb)
			ns.Codec, ns.Plain, ns.Prefix = inPlace{}, name == "plain", "in place "+name+":"
			s := mayfly.Must(sliding.New(ns, o))
			ctx, first := t.Context(), cart{Items: []string{"tea"}, Count: 1}
			if name == "foreign" {
				body, _ := inPlace{}.Append(nil, first)
				want(t, rdb.Set(ctx, ns.Prefix+"a", body, idle).Err(), nil)
			} else {
				want(t, s.Create(ctx, "a", first), nil)
			}
			read := func(key string, count int) {
				t.Helper()
				rdb.PExpire(ctx, ns.Prefix+key, idle/2) // so that it is to be renewed
				for range 2 {
					if got, err := s.Get(ctx, key); err != nil || !reflect.DeepEqual(got, cart{Items: []string{"tea"}, Count: count}) {
						t.Errorf("%s: Get: %+v, %v", name, got, err)
					}
				}
			}
			read("a", 1)
			_, err := s.Update(ctx, "a", func(c cart) (cart, error) { c.Count++; return c, nil })
			want(t, err, nil)
			read("a", 2)
			stored := rdb.Get(ctx, ns.Prefix+"a").Val()
			want(t, s.Rotate(ctx, "a", "b"), nil)
			read("b", 2)
			if moved := rdb.Get(ctx, ns.Prefix+"b").Val(); !bytes.HasSuffix([]byte(moved), []byte(stored[len(stored)-20:])) {
				t.Errorf("%s: %q was moved as %q", name, stored, moved)
			}
		}
	})
}
