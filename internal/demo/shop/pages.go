package shop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pageLives is how long a whole page is cached, and how much longer it may be served while a new one is made.
const pageLives = "public, max-age=1, stale-while-revalidate=2"

// handler is the shop as one process serves it. Pages are the same for everybody. What belongs to one shopper comes as a separate fragment, which
// is necessary if pages are cached.
func (p *process) handler() http.Handler {
	shared := http.NewServeMux()
	shared.HandleFunc("GET /product/{id}", p.productPage)
	shared.HandleFunc("GET /{$}", p.frontPage)
	all := http.NewServeMux()
	all.Handle("/", p.pages.decorate(shared))
	all.HandleFunc("GET /mine", p.mine)
	all.HandleFunc("POST /cart/{id}", p.putInCart)
	all.HandleFunc("POST /login", p.logIn)
	return all
}

// productID parses the number of a product, and reports whether the product exists.
func productID(text string) (id int, ok bool) {
	id, err := strconv.Atoi(text)
	return id, err == nil && id >= 0 && id < products
}

func (p *process) frontPage(w http.ResponseWriter, r *http.Request) {
	all, ways, errs := make([]product, products), make([]string, products), make([]error, products)
	var asking sync.WaitGroup
	for id := range all {
		asking.Go(func() {
			ctx, way := embark(r.Context())
			all[id], errs[id] = p.products.Get(ctx, id)
			ways[id] = string(way.product())
		})
	}
	asking.Wait()
	if err := errors.Join(errs...); err != nil {
		http.Error(w, "the shop cannot say: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Cache-Control", pageLives)
	w.Header().Set(productHeader, strings.Join(ways, ", "))
	page(w, func(w io.Writer) { renderFront(w, all) })
}

func (p *process) productPage(w http.ResponseWriter, r *http.Request) {
	id, ok := productID(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	ctx, way := embark(r.Context())
	found, err := p.products.Get(ctx, id)
	if err != nil {
		http.Error(w, "the shop cannot say: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Cache-Control", pageLives)
	w.Header().Set(productHeader, string(way.product()))
	p.shop.rendered.Add(1)
	page(w, func(w io.Writer) { renderProduct(w, found) })
}

func page(w http.ResponseWriter, render func(io.Writer)) {
	var b bytes.Buffer
	render(&b)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.Write(b.Bytes())
}

// shopperOf returns the shopper's name, from a cookie.
func shopperOf(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie("shopper"); err == nil && len(c.Value) < 64 {
		return c.Value
	}
	id := newShopper()
	http.SetCookie(w, &http.Cookie{Name: "shopper", Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	return id
}

// cartHeader says how many things are in the cart, for the simulated shoppers.
const cartHeader = "X-Cart"

// mine is the fragment for one shopper: the cart, the viewed products, and related ones. With ?viewed=7 it records a view of product 7. With parts=1
// it says where all this is kept, and how long.
func (p *process) mine(w http.ResponseWriter, r *http.Request) {
	shopper, ctx := shopperOf(w, r), r.Context()
	w.Header().Set("Cache-Control", "private, no-store")
	viewed, views := productID(r.URL.Query().Get("viewed"))
	in, err := p.cartOf(ctx, shopper)
	if err == nil && views {
		err = p.visits.record(ctx, shopper, viewed)
	}
	var latest, related []int
	if err == nil {
		latest, err = p.visits.recent(ctx, shopper)
	}
	if err == nil && views {
		related, err = p.visits.related(ctx, viewed)
	}
	if err != nil { // "Redis is down" is not "the cart is empty"
		http.Error(w, "Your cart cannot be shown right now.", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set(cartHeader, strconv.Itoa(len(in)))
	var parts []part
	if r.URL.Query().Has("parts") {
		for _, own := range [][2]string{{"your cart", p.cartPrefix}, {"what you looked at", visitPrefix}} {
			left := p.rdb.PTTL(ctx, own[1]+shopper).Val()
			one := part{own[0], "nowhere", "–", seconds(left)}
			switch {
			case left > 0:
				one.from = "Redis"
			case left == -1:
				one.from = "Redis, for ever"
			}
			parts = append(parts, one)
		}
	}
	page(w, func(w io.Writer) {
		renderMine(w, in, latest, related)
		if parts != nil {
			renderParts(w, "Only yours, in no page that is kept", parts)
		}
	})
}

func (p *process) putInCart(w http.ResponseWriter, r *http.Request) {
	shopper, ctx := shopperOf(w, r), r.Context()
	id, ok := productID(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	in, err := p.cartOf(ctx, shopper)
	if err == nil && len(in) < 20 {
		err = p.carts.Set(ctx, shopper, append(in, id))
	}
	if err != nil {
		http.Error(w, "Nothing can be put in the cart right now.", http.StatusServiceUnavailable)
		return
	}
	http.Redirect(w, r, fmt.Sprintf("../product/%d", id), http.StatusSeeOther)
}

func (p *process) logIn(w http.ResponseWriter, r *http.Request) {
	shopper := shopperOf(w, r)
	err := p.logins.Set(r.Context(), shopper, login{User: shopper, IP: "192.0.2.7", CSRF: newShopper()})
	if err != nil {
		http.Error(w, "Nobody can log in right now.", http.StatusServiceUnavailable)
		return
	}
	p.shop.addresses.Store(shopper, time.Now())
	w.WriteHeader(http.StatusNoContent)
}
