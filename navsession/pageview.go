package navsession

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// Page is one page view, for [Visits] in a program that has no type of its own.
type Page struct {
	URL   string    `json:"url"`
	Title string    `json:"title,omitempty"`
	Time  time.Time `json:"time,omitzero"`
}

// isBot is the guess of [MiddlewareOptions].Bot.
func isBot(r *http.Request) bool {
	prefetched := func(header string) bool { return strings.HasPrefix(r.Header.Get(header), "prefetch") }
	if slices.ContainsFunc([]string{"Sec-Purpose", "Purpose", "X-Moz"}, prefetched) {
		return true
	}
	agent := strings.ReplaceAll(strings.ToLower(r.UserAgent()), "cubot", "") // a maker of phones
	return agent == "" || slices.ContainsFunc(botSigns, func(sign string) bool { return strings.Contains(agent, sign) })
}

var botSigns = []string{"bot", "crawl", "spider", "slurp", "preview", "facebookexternalhit", "monitor", "pingdom", "lighthouse",
	"headless", "curl/", "wget/", "python-", "go-http-client", "java/", "libwww"}

// isAsset is the guess of [MiddlewareOptions].Asset.
func isAsset(r *http.Request) bool {
	if r.Header.Get("Upgrade") != "" {
		return true
	}
	if dest := r.Header.Get("Sec-Fetch-Dest"); dest != "" {
		return dest != "document"
	}
	return slices.Contains(assets, strings.ToLower(path.Ext(r.URL.Path)))
}

var assets = strings.Fields(`.css .js .mjs .map .wasm .json .xml .txt .rss .atom .webmanifest
	.png .jpg .jpeg .gif .svg .ico .webp .avif .bmp .woff .woff2 .ttf .otf .eot .mp3 .mp4 .m4a .webm .ogg .wav .mov .zip .gz`)

// isFailure reports whether a response with this status showed no page: a redirect, an error, or a response without content.
func isFailure(status int) bool {
	return status != http.StatusOK && status != http.StatusPartialContent && status != http.StatusNotModified
}

// pathOf names the page by its path, without the query, which may be private.
func pathOf(r *http.Request) Page { return Page{URL: r.URL.Path} }
