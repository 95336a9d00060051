package shop

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// There are few pages, so they are written by hand, and foreign text is escaped. Their style is the dashboard's, which has the same address.

const style = `#shop { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(45%, 13rem), 1fr)); gap: .8rem; padding: 0; list-style: none }
#shop .card { text-decoration: none; padding: 1rem } .price { grid-column: 1 / -1; font-size: 1.35rem; font-weight: 650 } main > .card { display: block; margin: 1rem 0 } .stars { color: var(--bad); letter-spacing: .1em }
.card p { margin: .3rem 0 } .reviews { padding-left: 1.1rem; columns: 22rem } .reviews li { margin: .2rem 0 } header nav { color: var(--quiet); margin: .3rem 0 1rem }`

// begin writes the beginning of every page.
func begin(w io.Writer, title string) {
	fmt.Fprintf(w, `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>%s - the mayfly shop</title>
<link rel="icon" href="/favicon.ico" type="image/svg+xml"><link rel="stylesheet" href="/page.css">
<style>%s</style>
<body class="plain">
<header><h1>%[1]s</h1><nav><a href="/shop/">the shop</a> · <a href="/">the dashboard</a></nav></header>
<main>
`, html.EscapeString(title), style)
}

// The end of every page, and the place for the table about this one answer.
const (
	end  = "</main>\n</html>\n"
	room = "<!-- parts -->"
)

// link returns a product's name as a link to its page.
func link(id int) string {
	return fmt.Sprintf(`<a href="/shop/product/%d">%s</a>`, id, html.EscapeString(names[id%len(names)]))
}

// list writes names of products, separated by commas.
func list(w io.Writer, before string, ids []int) {
	var links []string
	for _, id := range ids {
		links = append(links, link(id))
	}
	fmt.Fprintf(w, "%s%s.\n", before, strings.Join(links, ", "))
}

func price(cents int) string { return fmt.Sprintf("%d.%02d €", cents/100, cents%100) }

func renderFront(w io.Writer, all []product) {
	begin(w, "All we have")
	io.WriteString(w, `<ul id="shop">`)
	for _, p := range all {
		fmt.Fprintf(w, `<li><a class="card" href="/shop/product/%d"><b>%s</b><span class="price">%s</span><span class="about">%d in stock</span></a>`+"\n",
			p.ID, html.EscapeString(p.Name), price(p.Price), p.Stock)
	}
	io.WriteString(w, "</ul>\n"+room+end)
}

func renderProduct(w io.Writer, p product) {
	begin(w, p.Name)
	fmt.Fprintf(w, `<form class="card" method="post" action="/shop/cart/%d"><p><span class="price">%s</span> <small>%d in stock</small></p><button>Put it in the cart</button></form>
<div class="card" id="mine">…</div>
%s
<div class="card"><h2>What customers say</h2>
<ul class="reviews">
`, p.ID, price(p.Price), p.Stock, room)
	for _, r := range p.Reviews {
		fmt.Fprintf(w, "<li><span class=\"stars\" title=\"%d of 5\">%s%s</span> %s <small>%s</small>\n", r.Stars, strings.Repeat("★", r.Stars), strings.Repeat("☆", 5-r.Stars),
			html.EscapeString(r.Text), html.EscapeString(r.By))
	}
	fmt.Fprintf(w, `</ul></div>
<script>fetch("/shop/mine?viewed=%d&parts=1").then(r => r.text()).then(t => document.getElementById("mine").innerHTML = t)</script>
%s`, p.ID, end)
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

// part is a part of a page, where it came from, how long it has been cached, and how long it will be.
type part struct{ name, from, age, left string }

// renderParts writes where the parts of a page came from.
func renderParts(w io.Writer, title string, parts []part) {
	fmt.Fprintf(w, `<h2>%s</h2><div class="wide"><table><thead><tr><th scope="col"><th scope="col" class="words">came from<th scope="col">age<th scope="col">ends in</thead><tbody>`, html.EscapeString(title))
	for _, p := range parts {
		fmt.Fprintf(w, "<tr><th scope=\"row\">%s<td class=\"words\">%s<td>%s<td>%s\n", html.EscapeString(p.name), html.EscapeString(p.from), p.age, p.left)
	}
	io.WriteString(w, "</tbody></table></div>\n")
}
