package httppeers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/foreign"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// differs are the tests of the public suite that httpcache does not pass as they stand, and why not. The suite also has
// questions ("check") with no right answer: they are not counted.
var differs = map[string]string{
	// What the suite of this version asks for and its newer versions, as RFC 9111 does, do not.
	"age-parse-nonnumeric":        "an Age that is no number is ignored: section 5.1",
	"age-parse-negative":          "an Age that is no number is ignored: section 5.1",
	"age-parse-float":             "an Age that is no number is ignored: section 5.1",
	"age-parse-parameter":         "an Age that is no number is ignored: section 5.1",
	"age-parse-numeric-parameter": "an Age that is no number is ignored: section 5.1",
	"age-parse-prefix-twoline":    "of several Ages the first counts: section 5.1",
	"age-parse-dup-0":             "of several Ages the first counts: section 5.1",
	"age-parse-dup-0-twoline":     "of several Ages the first counts: section 5.1",
	"age-parse-dup-old":           "of several Ages the first counts: section 5.1",

	"stale-close-must-revalidate":  "the suite takes the proxy's 502, as it has no number, for an answer of the cache",
	"stale-close-proxy-revalidate": "the suite takes the proxy's 502, as it has no number, for an answer of the cache",
	"stale-close-no-cache":         "the suite takes the proxy's 502, as it has no number, for an answer of the cache",
	"stale-close-s-maxage=2":       "the suite takes the proxy's 502, as it has no number, for an answer of the cache",

	"304-etag-update-response-Content-MD5": "all fields are updated but those that frame the body: section 3.2",
	"304-etag-update-response-ETag":        "a 304 with another tag is about something else, so the origin is asked again: section 4.3.4",
	"conditional-lm-fresh-no-lm":           "what has no Last-Modified is as new as its Date: section 4.3.2",

	// What stands between the suite and the cache.
	"headers-store-Transfer-Encoding": "net/http does not take a coding that is none",

	// What this cache does not do.
	"vary-normalise-lang-select":                    "Content-Language does not choose",
	"partial-store-partial-reuse-partial":           "parts are not stored",
	"partial-store-partial-reuse-partial-byterange": "parts are not stored",
	"partial-store-partial-reuse-partial-absent":    "parts are not stored",
	"partial-store-partial-reuse-partial-suffix":    "parts are not stored",
	"partial-store-partial-complete":                "parts are not stored",
	"surrogate-max-age-me-target":                   "no Surrogate-Capability: the field is read as RFC 9213 has it",
	"surrogate-fresh-cc-nostore":                    "no Surrogate-Capability: the field is read as RFC 9213 has it",
	"surrogate-max-age-case-insensitive":            "keys of a Structured Field are lower case",
}

// differsWithoutCookies are those that differ as well where StoreSetCookie is off, as it is by default.
var differsWithoutCookies = map[string]string{
	"headers-store-Set-Cookie":            "what sets a cookie is not stored, unless StoreSetCookie says so",
	"304-etag-update-response-Set-Cookie": "what sets a cookie is not stored, unless StoreSetCookie says so",
	"other-set-cookie":                    "what sets a cookie is not stored, unless StoreSetCookie says so",
}

// runner runs the suite in its own folder, and prints of each test its kind, its result, and the sign by which the suite itself shows that:
// it shows no result of a test that depends on another one that did not pass.
const runner = `
import { runTests, getResults } from './client/runner.mjs'
import * as display from './lib/display.mjs'
import fetch from 'node-fetch'
import tests from './tests/index.mjs'
import surrogate from './tests/surrogate-control.mjs'
tests.push(surrogate)
await runTests(tests, fetch, false, process.env.BASE)
const results = getResults()
const kind = t => t.kind || (t.required === false ? 'optimal' : 'required')
console.log(JSON.stringify(tests.flatMap(s => s.tests).filter(t => t.id in results).map(t => ({ id: t.id, kind: kind(t), result: results[t.id], sign: display.determineTestResult(tests, t.id, results)[2] }))))
`

// onLoopback makes the suite's server listen there, which has no option for it.
const onLoopback = `data:text/javascript,import net from "node:net"; const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) { return listen.call(this, port, "127.0.0.1", ...rest) }`

// The public suite of tests for HTTP caches, https://cache-tests.fyi, by its own server and client, with the cache and a
// ReverseProxy between them. .ci/cachetests fetches it.
func TestPublicSuite(t *testing.T) {
	suite := foreign.Named(t, "MAYFLY_CACHETESTS_DIR", ".ci/cachetests")
	node := foreign.Named(t, "MAYFLY_NODE_BIN", "command -v node")
	port := freePort(t)
	server := exec.Command(node, "--import", onLoopback, "server/server.mjs")
	server.Dir = suite
	server.Env = append(os.Environ(), "npm_config_protocol=http", "npm_config_port="+port, "npm_config_pidfile="+filepath.Join(t.TempDir(), "pid"))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { server.Process.Kill(); server.Wait() }()
	await(t, "127.0.0.1:"+port)

	for _, cookies := range []bool{true, false} {
		name := map[bool]string{true: "", false: ", without StoreSetCookie"}[cookies]
		t.Run("redistest"+name, func(t *testing.T) { playSuite(t, redistest.Start(t).Client(), cookies, node, suite, port) })
		t.Run("redis 8"+name, func(t *testing.T) {
			playSuite(t, realredis.Start(t, realredis.Options{Flavour: realredis.Redis8}).Client(), cookies, node, suite, port)
		})
	}
}

// playSuite has the suite's client ask the suite's server through a cache over rdb, which stores cookies or not.
func playSuite(t *testing.T, rdb redis.UniversalClient, cookies bool, node, suite, port string) {
	differs := maps.Clone(differs)
	if !cookies {
		maps.Copy(differs, differsWithoutCookies)
	}
	surprises := func(o outcome) bool { return !o.passed() && o.Kind != "check" && differs[o.ID] == "" }
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "127.0.0.1:" + port})
	proxy.ErrorLog = log.New(new(bytes.Buffer), "", 0)
	cache := newCache(t, func(o *setup) {
		o.Namespace.Redis, o.Namespace.TTL = rdb, 24*time.Hour
		o.Targeted, o.StoreSetCookie = []string{"CDN-Cache-Control", "Surrogate-Control"}, cookies
		o.AnyLanguageOrder = true
	})
	front := httptest.NewServer(cache.Handler(proxy))
	defer front.Close()

	// The suite waits for seconds to pass. Where others keep the machine busy they may be too many: what fails may try again.
	all := map[string]outcome{}
	for range 3 {
		for _, o := range run(t, node, suite, front.URL) {
			if !all[o.ID].passed() {
				all[o.ID] = o
			}
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(all)), surprises) {
			break
		}
	}
	count, shown := map[string]int{}, map[string]int{}
	for _, o := range all {
		shown[o.Kind+" "+o.Sign]++
		why, known := differs[o.ID]
		switch {
		case o.passed():
			count[o.Kind+" passed"]++
			if known {
				t.Errorf("%s passes: it is in the list of those that do not", o.ID)
			}
		case surprises(o):
			t.Errorf("%s %s: %v", o.Kind, o.ID, o.Result)
		case known:
			count[o.Kind+" differs"]++
			t.Logf("%s %s: %s", o.Kind, o.ID, why)
		default:
			count["check answered otherwise"]++
		}
	}
	t.Logf("%d tests: %v; the suite shows %v", len(all), count, shown)
	if count["required passed"] < 140 || count["optimal passed"] < 80 {
		t.Errorf("too few of the suite ran: %v", count)
	}
}

// outcome is what became of one test.
type outcome struct {
	ID, Kind string
	Result   any // true, or what went wrong
	Sign     string
}

func (o outcome) passed() bool { return o.Result == true }

// run runs the suite once.
func run(t *testing.T, node, suite, front string) (all []outcome) {
	client := exec.CommandContext(t.Context(), node, "--no-warnings", "--input-type=module", "-e", runner)
	client.Dir, client.Env = suite, append(os.Environ(), "BASE="+front)
	var complaint bytes.Buffer
	client.Stderr = &complaint
	out, err := client.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		t.Fatalf("the suite: %v\n%.2000s", err, &complaint)
	}
	return all
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// await waits until somebody listens.
func await(t *testing.T, addr string) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); ; <-again.C {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal(fmt.Errorf("nobody listens at %s", addr))
		}
	}
}
