package dashboard_test

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/chromium"
	"github.com/mayflycache/mayfly/internal/dashboard"
	"github.com/mayflycache/mayfly/internal/shop"
)

var screenshots = flag.String("screenshots", "", "a directory to write pictures of the page to")

// open opens a shop and its dashboard, until the test ends, and returns the page's address. It never depends on how fast the machine is: mayfly
// may wait long for an engine that shares two processors with a browser.
func open(t *testing.T, set shop.Settings) string {
	t.Helper()
	db, err := embedded.Open(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := shop.Open(t.Context(), shop.Options{Redis: db.Client().Options(), Settings: set, RedisTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	until, cancel := context.WithCancel(context.Background())
	r := dashboard.NewRecorder(s)
	var running sync.WaitGroup
	running.Go(func() { r.Run(until) })
	server := httptest.NewServer(dashboard.Handler(s, r, dashboard.Options{Redis: "an embedded Redis", Until: until}))
	t.Cleanup(func() {
		cancel()
		running.Wait()
		server.Close()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		db.Close(context.Background())
	})
	return server.URL
}

// quiet is a small load, for a busy machine.
func quiet() shop.Settings {
	s := shop.Default
	s.Shoppers, s.Pause, s.Query = 80, 200*time.Millisecond, 300*time.Millisecond
	return s
}

const soon = 2 * time.Minute // for what happens in seconds on a machine that is not busy

func TestPictures(t *testing.T) {
	if *screenshots == "" {
		t.Skip("with -screenshots=DIR it takes pictures")
	}
	browser := chromium.Start(t)
	url := open(t, shop.Default)
	desk := chromium.Screen{Width: 1180, Height: 1060}
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
	wait(17)
	take("demo-before")
	page.Press(t, "e")
	wait(3)
	take("demo-stampede")
	page.Press(t, "m")
	wait(17)
	page.Press(t, "e")
	wait(4)
	take("demo-after")
	page.Show(t, chromium.Screen{Width: 1180, Height: 1060, Dark: true})
	take("demo-dark")
	page.Show(t, chromium.Screen{Width: 390, Height: 844, Scale: 2, Mobile: true})
	wait(1)
	take("demo-phone")
}

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
