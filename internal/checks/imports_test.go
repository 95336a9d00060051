package checks

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room says what one package may do. Imports of the standard library are free except those in never.
type room struct {
	may   string   // rooms, by their names in the table, and third-party modules
	never []string // standard packages ("net") and functions ("time.Now") that would break the room's promise
}

// others are third-party modules, by their names in the table.
var others = map[string]string{
	"go-redis":   "github.com/redis/go-redis/v9",
	"miniredis":  "github.com/alicebob/miniredis/v2",
	"prometheus": "github.com/prometheus/client_golang",
	"sync":       "golang.org/x/sync",
	"lua":        "github.com/yuin/gopher-lua",
	"compress":   "github.com/klauspost/compress",
	"httpsfv":    "github.com/dunglas/httpsfv",
}

// pure rooms have no clock, no randomness beyond math/rand, no network and no blocking locks.
var pure = []string{"net", "os", "context", "time.Now", "time.Sleep", "time.NewTimer", "time.AfterFunc", "time.Since"}

// rooms is the whole house, from the ground up. A package that is not listed fails the test: add it with what it may import. Rooms in
// internal are named without that prefix, as in docs/house.md.
var rooms = map[string]room{
	// Pure rules, which several wings stand on.
	"jitter":       {never: pure},
	"earlyrefresh": {never: pure},
	"expiry":       {never: append([]string{"sync", "sync/atomic"}, pure...)},
	"glob":         {never: pure},
	"hashslot":     {never: pure},
	"rfc9111":      {may: "httpsfv", never: append([]string{"sync"}, pure...)},

	// What the patterns share: may know go-redis, never the double.
	"client/check":      {never: pure},
	"client/keyform":    {may: "client/check", never: pure},
	"client/record":     {never: pure},
	"client/recently":   {},
	"client/flight":     {},
	"client/again":      {may: "go-redis"},
	"client/background": {},
	"client/admission":  {},
	"client/redelete":   {may: "client/background"},
	"client/turns":      {may: "client/flight"},
	"client/nodes":      {may: "client/again client/turns go-redis sync"},
	"client/lease":      {may: "client/nodes client/record client/keyform hashslot go-redis"},
	"client/localstore": {may: "expiry"},
	"client/localsync":  {may: "client/background client/localstore client/keyform hashslot go-redis"},

	// The vocabulary, and what the patterns share that knows it.
	"(root)":           {may: "client/admission client/flight client/nodes client/check client/keyform client/localsync client/turns jitter go-redis"},
	"client/events":    {may: "(root) client/nodes"},
	"client/localview": {may: "(root) client/localsync client/localstore client/keyform"},
	"client/keyspace":  {may: "(root) client/check client/keyform"},
	"client/sendonce":  {may: "(root) client/again client/events client/nodes go-redis"},

	// The patterns. Redis holds the only copy of the first three's values.
	"sliding":    {may: "(root) client/background client/keyspace client/sendonce client/nodes client/localview client/check client/keyform client/record hashslot go-redis"},
	"navsession": {may: "(root) client/keyspace client/sendonce client/check client/recently go-redis"},
	"fieldttl":   {may: "(root) client/keyspace client/sendonce client/check go-redis"},
	"cacheaside": {may: "(root) client/admission client/lease client/flight client/nodes client/localview client/localsync client/record client/keyspace " +
		"client/background client/redelete client/recently client/events client/check earlyrefresh compress"},
	"httpcache": {may: "(root) client/admission client/keyform client/lease client/flight client/nodes client/localview client/localsync client/record " +
		"client/background client/redelete client/recently client/events client/check rfc9111 sync"},

	// The double: never knows go-redis, nor any pattern.
	"redis/resp":    {never: pure},
	"redis/values":  {may: "expiry", never: pure},
	"redis/rdb":     {never: pure},
	"redis/script":  {may: "redis/resp lua", never: []string{"net", "os", "time.Sleep"}}, // reads the clock only to see how long a step has taken
	"redis/engine":  {may: "redis/values redis/rdb redis/script redis/resp expiry glob hashslot", never: []string{"net", "time.Now", "time.Sleep"}},
	"redis/server":  {may: "redis/engine redis/resp"},
	"redis/journal": {may: "redis/engine redis/rdb"},
	"redis/replica": {may: "redis/engine redis/journal redis/rdb redis/resp"},

	// The doors: the double, reachable as RESP.
	"redistest": {may: "redis/engine redis/server redis/resp hashslot go-redis"},
	"embedded":  {may: "(root) redis/engine redis/journal redis/replica redis/server go-redis"},

	// Operations: watch it, enforce it, find what violates it.
	"metrics":  {may: "(root) prometheus go-redis"},
	"ttlguard": {may: "(root) client/check go-redis"},
	"ttlaudit": {may: "client/again client/check jitter go-redis"},

	// What the command shows: a comparison of ways to keep a value.
	"demo/strategy":  {may: "(root) cacheaside jitter earlyrefresh go-redis"},
	"demo/lab":       {may: "demo/strategy go-redis"},
	"demo/panel":     {}, // without go-redis: the dashboard is built while that still is
	"demo/dashboard": {may: "demo/panel"},
	"demo/shop":      {may: "(root) demo/strategy demo/panel sliding navsession fieldttl httpcache jitter earlyrefresh go-redis"},
	"cmd/mayfly": {may: "(root) demo/strategy demo/lab demo/panel demo/shop demo/dashboard embedded metrics ttlaudit " +
		"redis/engine redis/journal redis/replica redis/server prometheus go-redis"},

	// Tests only: nothing but tests may import them.
	"testkit/diff":       {},
	"testkit/effort":     {},
	"testkit/expect":     {may: "(root)"},
	"testkit/foreign":    {},
	"testkit/chromium":   {may: "testkit/foreign"},
	"testkit/wire":       {may: "redis/resp"},
	"testkit/realserver": {may: "testkit/wire redis/resp"},
	"testkit/realredis":  {may: "testkit/realserver go-redis"},
	"testkit/late":       {may: "redistest go-redis"},
	"testkit/processes":  {may: "go-redis"},
	"testkit/proxy":      {may: "redis/resp"},
	"testkit/backends":   {may: "testkit/realredis redistest miniredis go-redis"},
}

// roomOf is the name in the table for the package in a folder.
func roomOf(dir string) string {
	if dir == "" || dir == "." {
		return "(root)"
	}
	return strings.TrimPrefix(dir, "internal/")
}

func TestImports(t *testing.T) {
	used := make(map[string]bool) // "room may"
	for _, f := range files(t) {
		if f.test {
			continue
		}
		name := roomOf(f.dir)
		rule, ok := rooms[name]
		if !ok {
			t.Errorf("%s: package %q is not in the table of rooms", f.name, name)
			continue
		}
		used[name+" "] = true
		for _, spec := range f.syntax.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			may, err := rule.permits(imported)
			if err != nil {
				t.Errorf("%s: %q %v", f.Position(spec.Pos()), name, err)
			}
			used[name+" "+may] = true
		}
		for _, forbidden := range rule.usesForbidden(f.syntax) {
			t.Errorf("%s: %q must not use %s", f.Position(forbidden.Pos()), name, selector(forbidden))
		}
	}
	for name, rule := range rooms {
		for _, may := range append(strings.Fields(rule.may), "") {
			if !used[name+" "+may] {
				t.Errorf("the table of rooms: %q does not need %q", name, may)
			}
		}
	}
}

// permits returns the name in the table for an import, or why it is not permitted.
func (r room) permits(imported string) (string, error) {
	may := strings.Fields(r.may)
	if inside, ok := strings.CutPrefix(imported, module); ok {
		name := roomOf(strings.TrimPrefix(inside, "/"))
		switch {
		case slices.Contains(may, name):
			return name, nil
		case strings.HasPrefix(name, "testkit/"):
			return "", fmt.Errorf("must not import %s: it is for tests", name)
		}
		return "", fmt.Errorf("must not import the room %q", name)
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") { // the standard library
		if slices.Contains(r.never, imported) {
			return "", fmt.Errorf("must not import %s", imported)
		}
		return "", nil
	}
	for _, name := range may {
		if m := others[name]; m != "" && (imported == m || strings.HasPrefix(imported, m+"/")) {
			return name, nil
		}
	}
	return "", fmt.Errorf("must not import %s", imported)
}

func (r room) usesForbidden(f *ast.File) (used []*ast.SelectorExpr) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(r.never, selector(s)) {
			used = append(used, s)
		}
		return true
	})
	return used
}

func selector(s *ast.SelectorExpr) string {
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return ""
}

// Tests do not wait for time to pass: they sleep in a synctest bubble, on the double's clock, or not at all. A file in which every sleep is
// in a bubble shows it by importing testing/synctest.
func TestNoTestWaits(t *testing.T) {
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		bubble := slices.ContainsFunc(f.syntax.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"testing/synctest"` })
		sleeps := room{never: []string{"time.Sleep"}}.usesForbidden(f.syntax)
		for _, s := range sleeps {
			if !bubble {
				t.Errorf("%s: time.Sleep outside a bubble", f.Position(s.Pos()))
			}
		}
	}
}
