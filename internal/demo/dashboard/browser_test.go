package dashboard_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/dashboard"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
	"github.com/mayflycache/mayfly/internal/testkit/chromium"
)

var screenshots = flag.String("screenshots", "", "a directory to write pictures of the page to")

// open opens a shop and its dashboard, until the test ends, and returns the page's address. It never depends on how fast the machine is: mayfly
// may wait long for an engine that shares two processors with a browser.
func open(t *testing.T, set panel.Settings) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	t.Cleanup(server.Close) // which waits for the streams of events: they end with the dashboard, before
	server.Config.Handler, _, _ = opened(t, shop.Options{Settings: set, RedisTimeout: 20 * time.Second, Own: true, Catalogue: small})
	server.Start()
	return server.URL
}

// small is a catalogue that leaves the machine to the others.
var small = shop.Catalogue{Articles: 240, Rate: 120, Workers: 1, Query: 30 * time.Millisecond}

const soon = 2 * time.Minute // for what happens in seconds on a machine that is not busy

// tab is an open dashboard.
type tab struct {
	*chromium.Page
	t *testing.T
}

// figure is JavaScript for a number that the page shows.
func figure(name string) string {
	return fmt.Sprintf(`parseFloat(document.querySelector("[data-figure=%s]").textContent.replaceAll(",", ""))`, name)
}

// set turns switches and sliders as scripts of the page do.
func (p tab) set(settings ...string) {
	p.t.Helper()
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		p.Eval(p.t, fmt.Sprintf(`ask("/set", {name: %q, value: %q})`, name, value), nil)
		p.Await(p.t, soon, fmt.Sprintf("settings[%q] == %s", name, value))
	}
}

// flip clicks a switch, and waits until the shop has done it.
func (p tab) flip(name string, on bool) {
	p.t.Helper()
	var is bool
	p.Eval(p.t, fmt.Sprintf(`document.querySelector("[data-switch=%s]").checked`, name), &is)
	if is != on {
		p.Eval(p.t, fmt.Sprintf(`document.querySelector("[data-switch=%s]").click()`, name), nil)
	}
	p.Await(p.t, soon, fmt.Sprintf("!!settings[%q] == %v", name, on))
}

// later waits until figures of so much later are there.
func (p tab) later(d time.Duration) {
	p.t.Helper()
	var at int64
	p.Eval(p.t, "moments.at(-1)?.at ?? 0", &at)
	p.Await(p.t, soon, fmt.Sprintf("moments.at(-1)?.at >= %d", at+d.Milliseconds()))
}

// stampede has everything expire, and returns how many queries there were in the seconds after.
func (p tab) stampede() (queries int) {
	p.t.Helper()
	p.later(time.Second)
	p.Eval(p.t, "moments.at(-1).asked", &queries)
	p.Press(p.t, "e")
	p.later(4 * time.Second)
	var after int
	p.Eval(p.t, "moments.at(-1).asked", &after)
	return after - queries
}

// afterPressing presses a key for a button that has everything loaded anew, until js is so soon after, ten times at most: a busy machine may
// spread what was to be loaded at once, chance may put together what jitter is to spread.
func (p tab) afterPressing(key, js string) (is bool) {
	p.t.Helper()
	for range 10 {
		p.idle()
		p.later(time.Second)
		p.Press(p.t, key)
		p.later(2 * time.Second)
		for range 8 {
			if p.Eval(p.t, js, &is); is {
				return true
			}
			p.later(time.Second / 4)
		}
	}
	return false
}

// idle waits until the database has nothing to do.
func (p tab) idle() {
	p.t.Helper()
	p.Await(p.t, soon, "moments.length > 4 && moments.slice(-4).every(m => m.worst <= 1)")
}

// The page in a browser: every switch moves the figure that it is there for, and every button does what it says. That the figures are right is
// shown in internal/demo/shop, where time is virtual; here is what a person sees, and all that is waited for may take as long as it does.
// Most of the time is spent waiting, so each group has a shop and a page of its own, and all but the first run at once; most have
// few shoppers, since all of them share the machine.
func TestTheDashboard(t *testing.T) {
	browser := chromium.Start(t)
	var groups sync.WaitGroup
	defer groups.Wait()
	group := func(name string, mayfly bool, f func(p tab)) {
		groups.Go(func() {
			t.Run(name, func(t *testing.T) {
				set := panel.Default
				set.Mayfly = mayfly
				set.Shoppers, set.TTL, set.Query, set.Connections, set.Pages = 200, 20*time.Second, 1500*time.Millisecond, 200, false
				p := tab{browser.Open(t, open(t, set), chromium.Screen{Width: 1180, Height: 1000}), t}
				p.Await(t, soon, "moments.length > 4")
				f(p)
			})
		})
	}
	group("mayfly: ten times fewer queries under the stampede", false, func(p tab) {
		hand := 0
		for range 10 { // a machine that is busy may need some before all shoppers stand in line
			if hand = max(hand, p.stampede()); hand >= 120 {
				break
			}
		}
		p.Press(p.t, "m")
		p.Await(p.t, soon, `settings.mayfly == 1 && document.querySelector("#way").textContent.startsWith("is on")`)
		p.idle()
		p.later(5 * time.Second) // what was asked by hand before
		ours := p.stampede()
		if ours == 0 || hand < 10*ours {
			p.t.Errorf("by hand %d queries, mayfly %d", hand, ours)
		}
	})
	groups.Wait() // the stampede is alone: beside the others it failed on a busy machine with -race
	for name, switches := range map[string][]flipped{
		"misses": {{"lease", []string{"shoppers=100", "early=0", "local=0"}, "e", "FIGURE >= 8", "FIGURE <= 2 && FIGURE > 0"}},
		"ends":   {{"jitter", []string{"shoppers=60", "early=0", "query=200"}, "f", "FIGURE == 8", "FIGURE <= 5"}},
		"carts":  {{"sliding", []string{"shoppers=40", "query=200"}, "", "FIGURE > 0", "FIGURE == 0"}},
		"reads": {
			{"early", []string{"shoppers=80", "local=0", "query=200", "ttl=4000"}, "", "FIGURE >= 1", "FIGURE <= .3"},
			{"local", []string{"early=1", "ttl=20000"}, "", "FIGURE >= 50", "FIGURE <= 10"},
			{"pages", nil, "", "FIGURE >= 50", "FIGURE <= 20 && FIGURE > 0"},
		},
		"sessions": {
			{"fields", []string{"shoppers=60", "query=200", "pause=200"}, "", "FIGURE >= 10", "FIGURE == 0"},
			{"visits", nil, "", "FIGURE >= 20", "moments.length > 12 && moments.slice(-12).every(m => m.endless <= moments.at(-12).endless)"},
		},
	} {
		group(name, true, func(p tab) {
			for _, s := range switches {
				p.t.Run(s.name, func(t *testing.T) { s.try(tab{p.Page, t}) })
			}
		})
	}
	group("crowd", true, func(p tab) {
		p.set("shoppers=0")
		p.flip("admission", false)
		p.Press(p.t, "r")
		p.Await(p.t, soon, `document.querySelector("#says").textContent == "Redis is emptied"`)
		p.later(3 * time.Second)
		p.Await(p.t, soon, figure("admission")+` < 60 && document.querySelector("#loads").textContent.endsWith(" queries at its database")`)
		p.flip("admission", true)
		p.Await(p.t, soon, `/^\d+ loads of \d+ run, \d+ wait$/.test(document.querySelector("#loads").textContent)`)
		p.Await(p.t, soon, figure("admission")+" >= 99")
	})
	group("people", true, people)
}

// flipped is a switch that is turned off and then on.
type flipped struct {
	name   string
	before []string // settings
	press  string   // the key of a button, in either state
	off    string   // what becomes so
	on     string
}

func (s flipped) try(p tab) {
	p.set(s.before...)
	for _, state := range []struct {
		on      bool
		becomes string
	}{{false, s.off}, {true, s.on}} {
		p.flip(s.name, state.on)
		becomes := strings.ReplaceAll(state.becomes, "FIGURE", figure(s.name))
		if s.press != "" && p.afterPressing(s.press, becomes) {
			continue
		}
		p.later(2 * time.Second)
		p.Await(p.t, soon, becomes)
	}
}

// people press buttons and keys, and look at the page on other screens.
func people(p tab) {
	t := p.t
	p.set("shoppers=40")
	t.Run("buttons", func(t *testing.T) {
		p := tab{p.Page, t}
		for button, state := range map[string]string{"kill": "killed", "hang": "hung"} {
			at := fmt.Sprintf("document.querySelector('[data-button=%s]')", button)
			p.Eval(t, at+".click()", nil)
			p.Await(t, soon, fmt.Sprintf("moments.at(-1).redis == %q && %s.ariaPressed == 'true'", state, at))
			p.Await(t, soon, "moments.at(-1).pages > 0 && moments.at(-1).failed == 0") // the shop is open
			p.Eval(t, at+".click()", nil)
			p.Await(t, soon, "moments.at(-1).redis == 'up' && "+at+".ariaPressed == 'false'")
		}
		p.Press(t, "d")
		p.Await(t, soon, "moments.at(-1).slow > 0 && document.querySelector('[data-button=slow]').ariaPressed == 'true'")
		p.Await(t, soon, "moments.at(-1).slow == 0 && document.querySelector('[data-button=slow]').ariaPressed == 'false'")
		p.Press(t, "f")
		p.Await(t, soon, `document.querySelectorAll(".ends circle").length == 8`)
		p.Press(t, "p")
		p.Await(t, soon, `document.querySelector("#intro [data-setting=processes]").textContent == "4"`)
		p.Press(t, "s") // the tour begins by hand
		p.Await(t, soon, `document.querySelector("[data-switch=mayfly]").checked == false && document.querySelector("[data-switch=lease]").disabled`)
	})
	t.Run("what cannot be is said", func(t *testing.T) {
		p := tab{p.Page, t}
		p.Eval(t, `ask("/set", {name: "shoppers", value: -1})`, nil)
		p.Await(t, soon, `document.querySelector("#says").textContent.includes("shoppers must be 0 to 2000, got -1")`)
	})
	t.Run("keyboard", func(t *testing.T) {
		p := tab{p.Page, t}
		p.Eval(t, "document.activeElement.blur()", nil)
		var reached []string
		for range 30 {
			p.Press(t, "Tab")
			var is string
			p.Eval(t, `(d => d.switch ?? d.button ?? d.slider ?? "")(document.activeElement.dataset)`, &is)
			reached = append(reached, is)
		}
		for _, want := range []string{"mayfly", "expire", "fill", "empty", "kill", "hang", "slow", "processes", "tour", "shoppers", "query"} {
			if !slices.Contains(reached, want) {
				t.Errorf("Tab does not come to %q: %q", want, reached)
			}
		}
		p.Eval(t, `document.querySelector("[data-switch=mayfly]").focus()`, nil)
		var was bool
		p.Eval(t, `document.activeElement.checked`, &was)
		p.Press(t, " ")
		p.Await(t, soon, fmt.Sprintf("!!settings.mayfly == %v", !was))
	})
	t.Run("phone, light and dark", func(t *testing.T) {
		for _, screen := range []chromium.Screen{{Width: 390, Height: 844, Mobile: true}, {Width: 360, Height: 740, Mobile: true}, {Width: 360, Height: 740, Mobile: true, Dark: true}, {Width: 1400, Height: 900, Dark: true}} {
			p.Show(t, screen)
			p.Await(t, soon, fmt.Sprintf("innerWidth == %d && matchMedia('(prefers-color-scheme: dark)').matches == %v", screen.Width, screen.Dark))
			var wide int
			if p.Eval(t, "document.documentElement.scrollWidth", &wide); wide > screen.Width {
				t.Errorf("on %d pixels the page is %d wide", screen.Width, wide)
			}
			if hidden := false; screen.Mobile { // the figures, and the charts of queries and of p99, beside the buttons
				p.Eval(t, `(scrollTo(0, 0), ["#now", "[data-chart=queries]", "[data-chart=latency]"].some(s => document.querySelector(s).getBoundingClientRect().bottom > document.querySelector("#buttons").getBoundingClientRect().top)
					|| document.querySelector("#buttons").getBoundingClientRect().bottom > innerHeight)`, &hidden)
				if hidden {
					t.Errorf("on %dx%d what the buttons change is not seen with them", screen.Width, screen.Height)
				}
			}
			var faint []string
			if p.Eval(t, contrast, &faint); len(faint) > 0 {
				t.Errorf("dark %v: too little contrast: %q", screen.Dark, faint)
			}
		}
	})
}

// contrast is JavaScript that returns which texts have less contrast than WCAG's 4.5 to 1.
const contrast = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
	const light = color => {
		canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
		const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!c.endsWith(", 0)") && c != "transparent") return c } return "white" };
	const faint = [];
	for (const e of document.querySelectorAll("h1, h2, p, dt, small, b, .about, .legend, button:enabled, output")) {
		if (e.closest("label:has(:disabled)") || !e.textContent.trim()) continue;
		const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
		if ((a + .05) / (b + .05) < 4.5) faint.push(e.textContent.trim().slice(0, 40) + " " + ((a + .05) / (b + .05)).toFixed(1));
	}
	return [...new Set(faint)];
})()`

func TestThePageIsSmallAndAlone(t *testing.T) {
	var weight int
	for _, file := range []string{"page.html", "page.css", "page.js"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		weight += len(text)
		if strings.Contains(string(text), "https://") || strings.Contains(string(text), "src=") {
			t.Errorf("%s takes something from elsewhere", file)
		}
	}
	if weight >= 100<<10 {
		t.Errorf("the page weighs %d bytes, 100 KiB are promised", weight)
	}
	t.Logf("the page weighs %d bytes", weight)
}

func TestPictures(t *testing.T) {
	if *screenshots == "" {
		t.Skip("with -screenshots=DIR it takes pictures")
	}
	browser := chromium.Start(t)
	h, s, r := opened(t, shop.Options{Settings: panel.Default, RedisTimeout: 20 * time.Second, Own: true, Catalogue: small})
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("/report", func(w http.ResponseWriter, _ *http.Request) {
		dashboard.Report(w, s, r, dashboard.Options{Redis: "an embedded Redis"})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.CloseClientConnections)
	url := server.URL
	desk, phone := chromium.Screen{Width: 1180, Height: 1060}, chromium.Screen{Width: 390, Height: 844, Scale: 2, Mobile: true}
	page := browser.Open(t, url, desk)
	take := func(name string) {
		if err := os.WriteFile(*screenshots+"/"+name+".png", page.Screenshot(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(seconds int) {
		var at int
		page.Eval(t, "moments.at(-1)?.at ?? 0", &at)
		page.Await(t, soon, fmt.Sprintf("moments.at(-1)?.at > %d", at+1000*seconds))
	}
	wait(30)
	page.Await(t, soon, "moments.slice(-8).every(m => m.queries < 20)") // between two ends
	page.Press(t, "e")
	page.Await(t, soon, "moments.slice(-3).some(m => m.queries > 100) && moments.at(-1).mark === undefined")
	wait(1)
	take("demo-stampede")
	wait(5)
	page.Press(t, "m")
	wait(14)
	page.Press(t, "e")
	wait(2)
	take("demo-mayfly")
	page.Show(t, chromium.Screen{Width: 1180, Height: 1060, Dark: true})
	wait(1)
	take("demo-dark")
	page.Show(t, phone)
	wait(1)
	take("demo-phone")
	page.Show(t, desk)
	for _, button := range []string{"f", "r"} { // a good deal at once
		page.Press(t, button)
	}
	wait(12)
	page.Press(t, "d")
	wait(9)
	take("demo-crowd")
	for name, path := range map[string]string{"demo-shop": "/shop/", "demo-product": "/shop/product/1"} {
		page = browser.Open(t, url+path, chromium.Screen{Width: 1000, Height: 720})
		page.Await(t, soon, `!document.querySelector("#mine") || document.querySelector("#mine table")`)
		take(name)
		page.Show(t, phone)
		take(name + "-phone")
	}
	page = browser.Open(t, url+"/report", desk)
	page.Eval(t, `document.querySelector("#charts").scrollIntoView()`, nil)
	take("demo-report")
	page.Show(t, phone)
	page.Eval(t, `document.querySelector("#trials").scrollIntoView()`, nil)
	take("demo-report-phone")
}
