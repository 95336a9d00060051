package realserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for _, test := range []struct {
		text string
		want string // "" for an error
	}{
		{"Redis server v=8.0.2 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=b52b02bf0759f5b4", "Redis 8.0.2"},
		{"Redis server v=7.0.15 sha=00000000:0", "Redis 7.0.15"},
		{"Valkey server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0", "Valkey 8.1.1"},
		{"Redis server v=10.2.3", "Redis 10.2.3"},
		{"redis-cli 8.0.2", ""},
		{"", ""},
	} {
		v, err := parseVersion(test.text)
		if got := v.String(); test.want == "" && err == nil || test.want != "" && got != test.want {
			t.Errorf("parseVersion(%q) = %v, %v, want %q", test.text, got, err, test.want)
		}
	}
}

func TestFlavoursTakeTheirOwnServersOnly(t *testing.T) {
	for _, test := range []struct {
		version  Version
		flavours []Flavour
	}{
		{Version{"Redis", 8, 0, 2}, []Flavour{Redis8}},
		{Version{"Redis", 8, 6, 3}, []Flavour{Redis8, Redis86}},
		{Version{"Redis", 10, 0, 0}, []Flavour{Redis8}},
		{Version{"Redis", 7, 4, 1}, nil},
		{Version{"Redis", 7, 0, 15}, []Flavour{Redis7}},
		{Version{"Valkey", 8, 1, 1}, []Flavour{Valkey}},
		{Version{"Valkey", 9, 0, 0}, nil},
	} {
		var got []Flavour
		for f := Redis8; f <= Valkey; f++ {
			if flavours[f].fits(test.version) {
				got = append(got, f)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(test.flavours) {
			t.Errorf("%v is %v, want %v", test.version, got, test.flavours)
		}
	}
}

// fakeServer makes a directory with a redis-server that can only print its version.
func fakeServer(t *testing.T, dir, version string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho '%s'\n", version)
	if err := os.WriteFile(filepath.Join(dir, "redis-server"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Only the variable counts: a server that merely happens to be there is not used.
func TestOnlyTheNamedServerIsUsed(t *testing.T) {
	path := fakeServer(t, t.TempDir(), "Redis server v=8.2.0")
	t.Setenv("PATH", path+":/bin")
	t.Setenv("MAYFLY_REQUIRE_REDIS", "")
	t.Setenv("MAYFLY_REDIS_BIN", "")
	if v := watch(t, func(t testing.TB) { need(t, Redis8) }); v.skipped == "" {
		t.Errorf("a server on PATH: %+v, want a skip", v)
	}
	t.Setenv("MAYFLY_REDIS_BIN", path)
	if b := need(t, Redis8); filepath.Dir(b.path) != path || b.version.String() != "Redis 8.2.0" {
		t.Errorf("need = %v, want the one in %s", b, path)
	}
	for dir, want := range map[string]string{
		fakeServer(t, t.TempDir(), "Redis server v=7.0.1"): "MAYFLY_REDIS_BIN must hold Redis 8.0 or newer, got Redis 7.0.1",
		t.TempDir(): "MAYFLY_REDIS_BIN: ",
	} {
		t.Setenv("MAYFLY_REDIS_BIN", dir)
		if v := watch(t, func(t testing.TB) { need(t, Redis8) }); !strings.Contains(v.failed, want) {
			t.Errorf("need: %+v, want a failure: %s", v, want)
		}
	}
}

// A verdict is how a watched test ended.
type verdict struct {
	testing.TB
	skipped, failed, logged string
	cleanups                []func()
}

// watch runs f with a test that can be skipped and failed without affecting t.
func watch(t *testing.T, f func(testing.TB)) (v *verdict) {
	v = &verdict{TB: t}
	defer func() {
		r := recover()
		for _, f := range slices.Backward(v.cleanups) {
			f()
		}
		if r != nil && r != v {
			panic(r)
		}
	}()
	f(v)
	return
}

func (v *verdict) Cleanup(f func()) { v.cleanups = append(v.cleanups, f) }
func (v *verdict) Failed() bool     { return v.failed != "" }

func (v *verdict) Logf(format string, args ...any) { v.logged += fmt.Sprintf(format, args...) }

func (v *verdict) Skipf(format string, args ...any) {
	v.skipped = fmt.Sprintf(format, args...)
	panic(v)
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.failed = fmt.Sprintf(format, args...)
	panic(v)
}

func TestWithoutAServerTestsSkipLoudlyOrFail(t *testing.T) {
	for _, f := range flavours {
		t.Setenv(f.variable, "")
	}
	for name, start := range map[string]func(testing.TB){
		"Start":         func(t testing.TB) { Start(t, Options{}) },
		"StartCluster":  func(t testing.TB) { StartCluster(t, 3, 0, Options{Flavour: Valkey}) },
		"StartSentinel": func(t testing.TB) { StartSentinel(t, 1, Options{Flavour: Redis7}) },
		"Tool":          func(t testing.TB) { Tool(t, Redis8, "redis-cli") },
	} {
		t.Setenv("MAYFLY_REQUIRE_REDIS", "")
		v := watch(t, start)
		if !strings.HasPrefix(v.skipped, "SKIPPED-NO-REDIS "+t.Name()+": no ") || v.failed != "" {
			t.Errorf("%s: %+v, want a skip that can be counted", name, v)
		}
		t.Setenv("MAYFLY_REQUIRE_REDIS", "1")
		v = watch(t, start)
		if v.skipped != "" || !strings.Contains(v.failed, "MAYFLY_REQUIRE_REDIS=1") {
			t.Errorf("%s: %+v, want a failure", name, v)
		}
	}
}
