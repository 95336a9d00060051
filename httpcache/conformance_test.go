package httpcache_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// behaviour is one thing that a shared cache does, seen from outside: requests for one URL, the origin's answers, and where the client's
// answers came from. The names are those of the public suite of cache tests, where it has them, so that results can be compared.
type behaviour struct {
	name string
	rfc  string // where it is specified: RFC 9111 if only a section is given
	play []step
}

// step is a request, with the origin's answer if the request gets that far. Lines of headers are separated by " | ". The date "@-60" is 60
// seconds ago.
type step struct {
	method, query, ask string // GET, none, none
	status             int    // 200
	give               string // the header of the answer
	body               string // of the answer; if empty, a text that names the step
	hints              string // the header of a 103 before it
	fails              bool   // the origin closes the connection instead of answering
	then               time.Duration

	want      outcome
	code      int    // the status that the client sees: the origin's unless set
	see       string // lines in the answer; one with ">" holds a number that is greater
	miss      string // fields that are not in it
	text      string // the body that the client sees
	forwarded string // lines in the request that the origin saw
	withheld  string // fields that it did not
}

// outcome is where an answer came from.
type outcome string

const (
	anywhere outcome = ""
	hit      outcome = "the cache"
	miss     outcome = "the origin"
	valid    outcome = "the cache, after a 304 of the origin"
)

const pause = 3 * time.Second

// reuse and refuse are the two most frequent plays: the origin answers, and some time later the answer serves another request, or does not.
func reuse(give string) []step { return []step{{give: give, then: pause}, {want: hit}} }
func refuse(give string) []step {
	return []step{{give: give, then: pause}, {want: miss}}
}

// arrangements are the places of the cache: around a handler, with a local tier and without; in front of a proxy; behind one.
// With the tier, each answer from the cache is requested once more, and then comes from this process. A plain run plays each behaviour
// with the tier and in one of the others, in turn.
var arrangements = []struct {
	name  string
	stage func(net *pipes, decorate func(http.Handler) http.Handler, origin http.Handler) http.Handler
}{
	{withTier, func(_ *pipes, decorate func(http.Handler) http.Handler, origin http.Handler) http.Handler {
		return decorate(origin)
	}},
	{"around a handler", func(_ *pipes, decorate func(http.Handler) http.Handler, origin http.Handler) http.Handler {
		return decorate(origin)
	}},
	{"before a proxy", func(net *pipes, decorate func(http.Handler) http.Handler, origin http.Handler) http.Handler {
		return decorate(net.proxy(net.serve("origin", origin)))
	}},
	{"behind a proxy", func(net *pipes, decorate func(http.Handler) http.Handler, origin http.Handler) http.Handler {
		return net.proxy(net.serve("cache", decorate(origin)))
	}},
}

const withTier = "with a local tier"

func play(t *testing.T, o httpcache.Options, all []behaviour) {
	for i, a := range arrangements {
		if effort.Race && i > 1 {
			break // the proxies are the standard library's
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			for n, b := range all {
				if !effort.Long() && i > 0 && i != 1+n%3 {
					continue
				}
				t.Run(b.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newStage(t)
						rdb := redistest.Start(t).Client()
						ns := mayfly.Namespace[string, []byte]{Name: "web", Redis: rdb, Prefix: "web:", TTL: 100 * 365 * 24 * time.Hour}
						if s.twice = a.name == withTier; s.twice {
							local := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{"web:"}, MaxBytes: 1 << 20}))
							defer local.Close(t.Context())
							ns.Local = local
						}
						cache, err := httpcache.New(ns, o)
						if err != nil {
							t.Fatal(err)
						}
						front := s.net.serve("front", a.stage(s.net, cache.Handler, s))
						for i := range b.play {
							s.perform(t, front, b, i)
						}
						s.net.close()
						if err := cache.Close(t.Context()); err != nil {
							t.Error(err)
						}
					})
				})
			}
		})
	}
}

// stage is the origin of one play, and records it.
type stage struct {
	net     *pipes
	visitor *http.Transport
	twice   bool // answers from the cache are requested again

	mu   sync.Mutex // guards the rest
	now  int        // the step that is performed
	play []step
	made []string // the bodies, by step
	saw  []http.Header
	how  []string // the methods of the requests at a step, "" if there was none
	by   []outcome
}

func newStage(t *testing.T) *stage {
	time.Sleep(time.Until(time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC))) // in 2000, where a bubble begins, years of two digits would be ambiguous
	s := &stage{net: newPipes()}
	s.visitor = s.net.client()
	return s
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	i, x := s.now, s.play[s.now]
	s.saw[i], s.how[i] = r.Header.Clone(), r.Method
	body := cmp.Or(x.body, fmt.Sprintf("made at step %d", i))
	s.made[i], s.by[i] = body, miss
	var before step
	if i > 0 {
		before = s.play[i-1]
	}
	s.mu.Unlock()

	if x.fails {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	if x.hints != "" {
		lines(x.hints, h.Add)
		w.WriteHeader(http.StatusEarlyHints)
		lines(x.hints, func(name, _ string) { h.Del(name) })
	}
	h.Set("Made-At", strconv.Itoa(i))
	h.Set("Content-Type", "text/plain")
	lines(x.give, h.Add)
	was := http.Header{}
	lines(before.give, was.Add)
	if x.want == valid && (asks(r.Header, "If-None-Match", was["Etag"]) || asks(r.Header, "If-Modified-Since", was["Last-Modified"])) {
		s.mu.Lock()
		s.by[i] = valid
		s.mu.Unlock()
		w.WriteHeader(http.StatusNotModified)
		return
	}
	status := cmp.Or(x.status, 200)
	w.WriteHeader(status)
	if status >= 200 && status != 204 && status != 304 {
		io.WriteString(w, body)
	}
}

func asks(h http.Header, name string, validator []string) bool {
	return len(validator) == 1 && slices.Equal(h[name], validator)
}

// perform does one step and checks its result.
func (s *stage) perform(t *testing.T, front string, b behaviour, i int) {
	s.mu.Lock()
	s.now, s.play = i, b.play
	s.made, s.saw, s.how, s.by = append(s.made, ""), append(s.saw, nil), append(s.how, ""), append(s.by, hit)
	s.mu.Unlock()
	x := b.play[i]

	r, err := http.NewRequestWithContext(t.Context(), cmp.Or(x.method, "GET"), "http://"+front+"/page"+x.query, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines(x.ask, r.Header.Add)
	s.ask(t, r, b, i)
	if x.want == hit && x.give == "" && !failed(x) && s.twice {
		s.ask(t, r, b, i)
	}
	time.Sleep(x.then)
	synctest.Wait()
}

func (s *stage) ask(t *testing.T, r *http.Request, b behaviour, i int) {
	x := b.play[i]
	var hints []textproto.MIMEHeader
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, h)
		return nil
	}}))
	answer, err := s.visitor.RoundTrip(r)
	if err != nil {
		if !x.fails || x.want == hit {
			t.Errorf("%s, step %d: %v", b.rfc, i, err)
		}
		return
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	synctest.Wait() // background work ends
	s.look(t, b, i, answer, string(body), err, hints)
}

func (s *stage) look(t *testing.T, b behaviour, i int, answer *http.Response, body string, err error, hints []textproto.MIMEHeader) {
	x := b.play[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s, step %d: %s\nanswer: %d %.300v", b.rfc, i, fmt.Sprintf(format, args...), answer.StatusCode, answer.Header)
	}
	if err != nil {
		wrong("%v", err)
	}
	at, made := strconv.Atoi(answer.Header.Get("Made-At"))
	from := s.by[i]
	if made == nil && at < i && from == miss { // renewed in the background, or the origin failed
		from = hit
	}
	if x.want != anywhere && from != x.want {
		wrong("it came from %s, want %s", from, x.want)
	}
	code := cmp.Or(x.code, x.status, 200)
	if x.fails && x.code == 0 && x.want != hit {
		code = 502
	}
	if answer.StatusCode != code {
		wrong("status %d, want %d", answer.StatusCode, code)
	}
	text := x.text
	if text == "" && made == nil && at < len(s.made) && bodied(x, code) {
		text = s.made[at]
		if from == valid { // the header is new, the body is not
			text = s.made[i-1]
		}
	}
	if (text != "" || !bodied(x, code)) && body != text {
		wrong("body %.100q, want %q", body, text)
	}
	lines(x.see, func(name, value string) { see(answer.Header, name, value, wrong) })
	for _, name := range strings.Fields(x.miss) {
		if got := answer.Header.Values(name); got != nil {
			wrong("there is a field %s: %q", name, got)
		}
	}
	lines(x.forwarded, func(name, value string) {
		if name == "Method" && s.how[i] == value {
			return
		}
		if got := s.saw[i].Values(name); strings.Join(got, ", ") != value {
			wrong("the origin saw %s: %q, want %q", name, got, value)
		}
	})
	for _, name := range strings.Fields(x.withheld) {
		if got := s.saw[i].Values(name); got != nil {
			wrong("the origin saw %s: %q", name, got)
		}
	}
	if (len(hints) == 1) != (x.hints != "" && x.want != hit) {
		wrong("%d early hints", len(hints))
	}
	if made == nil {
		status, how := answer.Header.Get("Cache-Status"), "; fwd="
		if from == hit && !failed(x) {
			how = "; hit"
		}
		if !strings.HasPrefix(status, "mayfly"+how) {
			wrong("Cache-Status is %q of what came from %s", status, from)
		}
	}
}

// failed reports whether the origin was asked and failed.
func failed(x step) bool { return x.fails || x.status >= 500 && x.code == 200 }

func bodied(x step, code int) bool {
	return x.method != "HEAD" && code != 204 && code != 304 && (code != 416 || x.status == code)
}

func see(h http.Header, name, value string, wrong func(string, ...any)) {
	got := strings.Join(h.Values(name), ", ")
	if bound, ok := strings.CutPrefix(value, "> "); ok {
		n, err := strconv.Atoi(got)
		if least, _ := strconv.Atoi(bound); err != nil || n <= least {
			wrong("%s is %q, want %s", name, got, value)
		}
	} else if got != value {
		wrong("%s is %q, want %q", name, got, value)
	}
}

var dates = regexp.MustCompile(`@(-?\d+)$`)

// lines calls add with each line of a step's header.
func lines(all string, add func(name, value string)) {
	for line := range strings.SplitSeq(all, " | ") {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimPrefix(value, " ")
		if m := dates.FindStringSubmatch(value); m != nil {
			n, _ := strconv.Atoi(m[1])
			value = time.Now().Add(time.Duration(n) * time.Second).UTC().Format(http.TimeFormat)
		}
		add(name, value)
	}
}
