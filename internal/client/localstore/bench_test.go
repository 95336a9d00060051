package localstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mayflycache/mayfly/internal/client/localstore"
)

const resident = 65_536

// filled returns a view with 65,536 entries, their keys, and an order to ask for them by Zipf 1.1.
func filled(b *testing.B) (v *localstore.Values[[]byte], keys []string, order []uint32) {
	v = localstore.NewValues[[]byte](newStore(b, localstore.Options{MaxEntries: 2 * resident}))
	keys = make([]string, resident)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%016d", i)
		v.Set(keys[i], make([]byte, 100), 100, 3_600_000, 1000)
	}
	r := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(r, 1.1, 1, resident-1)
	scattered := r.Perm(resident)
	order = make([]uint32, 1<<20)
	for i := range order {
		order[i] = uint32(scattered[z.Uint64()])
	}
	return v, keys, order
}

var kept int

func BenchmarkGet(b *testing.B) {
	v, keys, order := filled(b)
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			value, _, _ := v.Get(keys[order[i%len(order)]], 2000)
			kept += len(value)
		}
	})
	b.Run("hit/clock", func(b *testing.B) {
		clock := localstore.NewClock()
		from := clock.Now() - 1000
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			value, _, _ := v.Get(keys[order[i%len(order)]], clock.Now()-from)
			kept += len(value)
		}
	})
	b.Run("hit/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			n := 0
			for i := rand.IntN(len(order)); pb.Next(); i++ {
				value, _, _ := v.Get(keys[order[i%len(order)]], 2000)
				n += len(value)
			}
		})
	})
	b.Run("hit/one key/parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			n := 0
			for pb.Next() {
				value, _, _ := v.Get(keys[0], 2000)
				n += len(value)
			}
		})
	})
	b.Run("miss", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.Get("absent", 2000)
		}
	})
}

func BenchmarkSet(b *testing.B) {
	v, keys, order := filled(b)
	value := make([]byte, 100)
	b.Run("replace", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			v.Set(keys[order[i%len(order)]], value, 100, 3_600_000+int64(i%1000), 2000)
		}
	})
	b.Run("evict", func(b *testing.B) {
		small := localstore.NewValues[[]byte](newStore(b, localstore.Options{MaxEntries: resident / 4}))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			small.Set(keys[i%len(keys)], value, 100, 3_600_000, 2000)
		}
	})
}
