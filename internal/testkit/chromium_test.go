package testkit_test

import (
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/chromium"
)

// A page is opened by its URL, and used as a person would: by keys and by looking.
func TestAPage(t *testing.T) {
	browser := chromium.Start(t)
	page := browser.Open(t, `data:text/html,<title>hi</title><button onclick="document.title='pressed'">press</button>`, chromium.Screen{Width: 300, Height: 200, Dark: true})
	page.Press(t, "Tab")
	page.Press(t, "Enter")
	page.Await(t, 0, `document.title == "pressed"`)
	var dark bool
	page.Eval(t, `matchMedia("(prefers-color-scheme: dark)").matches`, &dark)
	if png := page.Screenshot(t); !dark || len(png) < 100 || string(png[1:4]) != "PNG" {
		t.Errorf("dark %v, a picture of %d bytes", dark, len(png))
	}
}
