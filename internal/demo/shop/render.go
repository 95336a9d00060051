package shop

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// There are three pages, so they are written out; what is not ours is escaped.

const style = `body { font: 17px/1.5 -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; margin: 1.5rem auto; max-width: 44rem; padding: 0 1rem }
a { color: inherit } nav, #mine { color: #777 } .price { font-size: 1.4em } li { margin: .3em 0 } button { font: inherit; padding: .3em 1em }`

// begin writes what every page begins with.
func begin(w io.Writer, title string) {
	fmt.Fprintf(w, `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>%s - the mayfly shop</title>
<style>%s</style>
<nav><a href="/shop/">the shop</a> · <a href="/">the dashboard</a></nav>
<h1>%[1]s</h1>
`, html.EscapeString(title), style)
}

// link is a product's name, which leads to its page.
func link(id int) string {
	return fmt.Sprintf(`<a href="/shop/product/%d">%s</a>`, id, html.EscapeString(names[id%len(names)]))
}

// list writes names of products with commas between.
func list(w io.Writer, before string, ids []int) {
	var links []string
	for _, id := range ids {
		links = append(links, link(id))
	}
	fmt.Fprintf(w, "%s%s.\n", before, strings.Join(links, ", "))
}

func renderFront(w io.Writer) {
	begin(w, "All we have")
	io.WriteString(w, "<ul>")
	for id := range names {
		io.WriteString(w, "<li>"+link(id))
	}
	io.WriteString(w, "</ul>\n</html>\n")
}

func renderProduct(w io.Writer, p product) {
	begin(w, p.Name)
	fmt.Fprintf(w, `<p class="price">%d.%02d €, %d in stock</p>
<form method="post" action="/shop/cart/%d"><button>Put it in the cart</button></form>
<div id="mine">…</div>
<h2>What customers say</h2>
<ul>
`, p.Price/100, p.Price%100, p.Stock, p.ID)
	for _, r := range p.Reviews {
		fmt.Fprintf(w, "<li><b title=\"%d of 5\">%s%s</b> %s <i>%s</i>\n", r.Stars, strings.Repeat("★", r.Stars), strings.Repeat("☆", 5-r.Stars),
			html.EscapeString(r.Text), html.EscapeString(r.By))
	}
	fmt.Fprintf(w, `</ul>
<script>fetch("/shop/mine?viewed=%d").then(r => r.text()).then(t => document.getElementById("mine").innerHTML = t)</script>
</html>
`, p.ID)
}

func renderMine(w io.Writer, in cart, latest, related []int) {
	if len(in) == 0 {
		io.WriteString(w, "<p>In your cart: nothing.\n")
	} else {
		list(w, "<p>In your cart: ", in)
	}
	list(w, "<p>You looked at: ", latest)
	if len(related) > 0 {
		list(w, "<p>Seen with it: ", related)
	}
}
