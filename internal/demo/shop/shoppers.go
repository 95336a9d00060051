package shop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

var shopperNumbers atomic.Int64

// newShopper returns a name that nobody else has had.
func newShopper() string {
	return fmt.Sprintf("%d-%08x", shopperNumbers.Add(1), rand.Uint32())
}

// letIn lets shoppers in, or sends some home, until there are n; s.changing is held.
func (s *Shop) letIn(n int) {
	for len(s.shoppers) > n {
		last := len(s.shoppers) - 1
		s.shoppers[last]()
		s.shoppers = s.shoppers[:last]
	}
	for len(s.shoppers) < n && s.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(s.ctx)
		s.shoppers = append(s.shoppers, cancel)
		s.running.Go(func() {
			defer cancel()
			for s.visit(ctx) {
			}
		})
	}
}

// A visit is a number of looks at products, mostly at the best sellers. Some shoppers put a thing in the cart, and check from time to time whether it
// is still there.
const (
	looks     = 60 // of a visit, on average
	mineEvery = 3  // looks
)

// visit is one visit. It reports whether there is time for another.
func (s *Shop) visit(ctx context.Context) bool {
	v := visitor{shop: s, ctx: ctx, name: newShopper()}
	defer s.addresses.Delete(v.name)
	choice := rand.NewZipf(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), 1.2, 1, uint64(products-1))
	for look := range looks/2 + rand.IntN(looks) {
		if !sleep(ctx, rand.N(2*s.Settings().Pause)) {
			return false
		}
		id := int(choice.Uint64())
		if look == 0 {
			v.do(v.ctx, http.MethodPost, "/login")
		}
		begun := time.Now()
		page, way := embark(v.ctx)
		status, _, header := v.do(page, http.MethodGet, "/product/"+strconv.Itoa(id))
		if status == 0 {
			return false
		}
		s.took.add(time.Since(begun))
		s.got.add(way.page(status, header))
		if look%mineEvery != 0 {
			continue
		}
		if look > 0 && !v.has {
			if status, generation, _ := v.do(v.ctx, http.MethodPost, "/cart/"+strconv.Itoa(id)); status < 400 {
				v.has, v.generation = true, generation
				s.carts.Add(1)
			}
			continue
		}
		status, generation, header := v.do(v.ctx, http.MethodGet, "/mine?viewed="+strconv.Itoa(id))
		switch {
		case status >= 500:
			s.unavailable.Add(1)
		case !v.has:
		case generation != v.generation: // other processes keep it elsewhere
			v.has = false
		case header.Get(cartHeader) == "0":
			v.has = false
			s.lost.Add(1)
		}
	}
	return ctx.Err() == nil
}

// visitor is one shopper on one visit.
type visitor struct {
	shop       *Shop
	ctx        context.Context
	name       string
	has        bool // something is in the cart, put there by a process of this generation
	generation int
}

// sleep waits for d. It reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// do sends a request to one of the processes. The status is 0 if the shopper was sent home meanwhile.
func (v *visitor) do(ctx context.Context, method, target string) (status, generation int, h http.Header) {
	p, generation := v.shop.borrow()
	if p == nil {
		return http.StatusServiceUnavailable, generation, nil
	}
	defer p.using.Done()
	r, err := http.NewRequestWithContext(ctx, method, "http://shop.example"+target, nil)
	if err != nil {
		return http.StatusBadRequest, generation, nil
	}
	r.RequestURI, r.RemoteAddr = target, "192.0.2.7:1234" // as of a server
	r.AddCookie(&http.Cookie{Name: "shopper", Value: v.name})
	w := answer{header: make(http.Header)}
	p.serve.ServeHTTP(&w, r)
	if ctx.Err() != nil {
		w.status = 0
	}
	return w.status, generation, w.header
}

// answer is the part of a response that a simulated shopper reads; it skips the body.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return len(b), nil
}
