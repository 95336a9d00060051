// Package chromium drives a headless Chromium for tests of pages. It speaks the DevTools protocol over two pipes and needs only the standard
// library and the browser, which .ci/chromium fetches.
//
//	browser := chromium.Start(t) // skips the test where there is none
//	page := browser.Open(t, url, chromium.Screen{Width: 1200, Height: 900})
//	page.Eval(t, `document.title`, &title)
//	page.Await(t, 30*time.Second, `document.querySelector("output").textContent != ""`)
//	png := page.Screenshot(t)
package chromium

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/foreign"
)

// Browser is a running Chromium.
type Browser struct {
	write *os.File

	mu      sync.Mutex // guards the fields below
	last    int
	waiting map[int]chan reply
	ended   error
}

type reply struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// patience is how long the browser may take to answer on a busy machine.
const patience = 60 * time.Second

// Start starts the browser of MAYFLY_CHROMIUM_BIN, which ends with the test. Without one the test is skipped; see package foreign.
func Start(tb testing.TB) *Browser {
	tb.Helper()
	program := foreign.Named(tb, "MAYFLY_CHROMIUM_BIN", ".ci/chromium")
	toBrowser, write, toErr := os.Pipe()
	read, fromBrowser, fromErr := os.Pipe()
	// The browser may still write to its profile when it is killed, so this is not t.TempDir, which must be removable at the end.
	profile, profileErr := os.MkdirTemp("", "mayfly-chromium-")
	if err := errors.Join(toErr, fromErr, profileErr); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--disable-extensions", "--remote-debugging-pipe", "--user-data-dir="+profile)
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // files 3 and 4 by the protocol
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	toBrowser.Close()
	fromBrowser.Close()
	b := &Browser{write: write, waiting: make(map[int]chan reply)}
	go b.listen(read)
	tb.Cleanup(func() {
		write.Close()
		cmd.Process.Kill()
		cmd.Wait()
		read.Close()
		os.RemoveAll(profile)
	})
	return b
}

// listen passes replies to their callers. Events are ignored.
func (b *Browser) listen(from *os.File) {
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ended = fmt.Errorf("the browser has ended: %w", err)
			for _, w := range b.waiting {
				close(w)
			}
			clear(b.waiting)
			return
		}
		var r reply
		if json.Unmarshal(text[:len(text)-1], &r) != nil || r.ID == 0 {
			continue
		}
		b.mu.Lock()
		if w := b.waiting[r.ID]; w != nil {
			w <- r
			delete(b.waiting, r.ID)
		}
		b.mu.Unlock()
	}
}

// call calls a method of the protocol, in a session if one is given.
func (b *Browser) call(tb testing.TB, session, method string, params, result any) {
	tb.Helper()
	if err := b.try(session, method, params, result); err != nil {
		tb.Fatalf("chromium: %s: %v", method, err)
	}
}

func (b *Browser) try(session, method string, params, result any) error {
	answer := make(chan reply, 1)
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return b.ended
	}
	b.last++
	message := map[string]any{"id": b.last, "method": method, "params": params}
	if session != "" {
		message["sessionId"] = session
	}
	text, err := json.Marshal(message)
	if err == nil {
		b.waiting[b.last] = answer
		_, err = b.write.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case r, ok := <-answer:
		switch {
		case !ok:
			return b.ended
		case r.Error != nil:
			return fmt.Errorf("%s", r.Error.Message)
		case result != nil:
			return json.Unmarshal(r.Result, result)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("no answer in %v", patience)
	}
}

// Screen is the screen that a page is shown on.
type Screen struct {
	Width, Height int
	Scale         float64 // pixels of a screenshot per pixel of CSS; 0 is 1
	Mobile, Dark  bool
}

// Page is an open page.
type Page struct {
	browser *Browser
	session string
}

// Open opens a page and waits until it is loaded.
func (b *Browser) Open(tb testing.TB, url string, s Screen) *Page {
	tb.Helper()
	var target struct{ TargetID string }
	b.call(tb, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call(tb, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &Page{b, attached.SessionID}
	p.Show(tb, s)
	b.call(tb, p.session, "Page.navigate", map[string]any{"url": url}, nil)
	p.Await(tb, patience, `location.href != "about:blank" && document.readyState == "complete"`)
	return p
}

// Show shows the page on another screen.
func (p *Page) Show(tb testing.TB, s Screen) {
	tb.Helper()
	scheme := "light"
	if s.Dark {
		scheme = "dark"
	}
	p.browser.call(tb, p.session, "Emulation.setDeviceMetricsOverride", map[string]any{
		"width": s.Width, "height": s.Height, "deviceScaleFactor": max(s.Scale, 1), "mobile": s.Mobile}, nil)
	p.browser.call(tb, p.session, "Emulation.setEmulatedMedia", map[string]any{
		"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Eval evaluates JavaScript, waits if the result is a promise, and stores the result, which must be representable in JSON, in result if that
// is not nil.
func (p *Page) Eval(tb testing.TB, js string, result any) {
	tb.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.browser.call(tb, p.session, "Runtime.evaluate", map[string]any{"expression": js, "returnByValue": true, "awaitPromise": true}, &answer)
	if e := answer.ExceptionDetails; e != nil {
		tb.Fatalf("chromium: %s: %s %s", js, e.Text, e.Exception.Description)
	}
	if result != nil {
		if err := json.Unmarshal(answer.Result.Value, result); err != nil {
			tb.Fatalf("chromium: %s: %v", js, err)
		}
	}
}

// Await evaluates js repeatedly until it is true, and fails the test if that takes longer than most.
func (p *Page) Await(tb testing.TB, most time.Duration, js string) {
	tb.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(most); ; <-again.C {
		var is bool
		p.Eval(tb, "!!("+js+")", &is)
		if is {
			return
		}
		if time.Now().After(end) {
			tb.Fatalf("chromium: after %v it is still not so that %s", most, js)
		}
	}
}

// Press presses a key, as a person does: a letter, Tab, Enter, a space.
func (p *Page) Press(tb testing.TB, key string) {
	tb.Helper()
	params := map[string]any{"type": "keyDown", "key": key, "code": key}
	switch key {
	case "Tab":
		params["windowsVirtualKeyCode"] = 9
	case "Enter":
		params["windowsVirtualKeyCode"], params["text"] = 13, "\r"
	case " ":
		params["windowsVirtualKeyCode"], params["text"], params["code"] = 32, " ", "Space"
	default:
		params["text"] = key
	}
	p.browser.call(tb, p.session, "Input.dispatchKeyEvent", params, nil)
	params["type"] = "keyUp"
	delete(params, "text")
	p.browser.call(tb, p.session, "Input.dispatchKeyEvent", params, nil)
}

// Screenshot returns the visible part of the page as a PNG.
func (p *Page) Screenshot(tb testing.TB) []byte {
	tb.Helper()
	var shot struct{ Data string }
	p.browser.call(tb, p.session, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		tb.Fatal(err)
	}
	return png
}
