package realredis

import (
	"errors"
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
		want string // "" where it is an error
	}{
		{"Redis server v=8.0.2 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=b52b02bf0759f5b4", "Redis 8.0.2"},
		{"Redis server v=7.0.15 sha=00000000:0", "Redis 7.0.15"},
		{"Valkey server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0", "Valkey 8.1.1"},
		{"# Server\r\nredis_version:10.2.3\r\nredis_git_sha1:00000000\r\n", "Redis 10.2.3"},
		{"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n", "Valkey 8.1.1"},
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
		{Version{"Redis", 10, 0, 0}, []Flavour{Redis8}},
		{Version{"Redis", 7, 4, 1}, nil},
		{Version{"Redis", 7, 0, 15}, []Flavour{Redis7}},
		{Version{"Valkey", 8, 1, 1}, []Flavour{Valkey}},
		{Version{"Valkey", 9, 0, 0}, nil},
	} {
		var got []Flavour
		for f := Redis8; f <= Valkey; f++ {
			if f.fits(test.version) {
				got = append(got, f)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(test.flavours) {
			t.Errorf("%v is %v, want %v", test.version, got, test.flavours)
		}
	}
}

// fakeServer makes a directory with a redis-server that knows its version and nothing else.
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

func TestFindLooksInOrder(t *testing.T) {
	const redis8, redis7, valkey = "Redis server v=8.2.0", "Redis server v=7.0.1", "Valkey server v=8.1.0"
	root := t.TempDir()
	cache := filepath.Join(root, "cache")
	t.Setenv("MAYFLY_REDIS_CACHE", cache)
	for f := Redis8; f <= Valkey; f++ {
		t.Setenv(f.env(), "")
	}
	t.Setenv("PATH", filepath.Join(root, "nothing"))
	want := func(f Flavour, dir string) {
		t.Helper()
		b, err := find(f)
		if dir == "" && !errors.Is(err, errNotFound) {
			t.Errorf("find(%v) = %v, %v, want not found", f, b, err)
		}
		if dir != "" && (err != nil || filepath.Dir(b.path) != dir) {
			t.Errorf("find(%v) = %v, %v, want it in %s", f, b, err, dir)
		}
	}
	want(Redis8, "")

	path7 := fakeServer(t, filepath.Join(root, "path7"), redis7)
	t.Setenv("PATH", path7+":/bin")
	want(Redis8, "")
	want(Redis7, path7)

	path8 := fakeServer(t, filepath.Join(root, "path8"), redis8)
	t.Setenv("PATH", path8+":/bin")
	want(Redis8, path8)

	cached := fakeServer(t, filepath.Join(cache, "8", "bin"), redis8)
	want(Redis8, cached)
	want(Valkey, "")
	cachedValkey := fakeServer(t, filepath.Join(cache, "valkey", "bin"), valkey)
	want(Valkey, cachedValkey)

	bin := fakeServer(t, filepath.Join(root, "bin"), redis8)
	t.Setenv("MAYFLY_REDIS_BIN", bin)
	want(Redis8, bin)
	want(Valkey, cachedValkey)
	t.Setenv("MAYFLY_REDIS7_BIN", path7)
	want(Redis7, path7)
	t.Setenv("MAYFLY_REDIS_BIN", "none")
	want(Redis8, "")
	want(Redis7, "")
	want(Valkey, "")

	t.Setenv("MAYFLY_REDIS_BIN", path7)
	if b, err := find(Redis8); err == nil || !strings.Contains(err.Error(), "MAYFLY_REDIS_BIN must hold Redis 8.0 or newer, got Redis 7.0.1") {
		t.Errorf("find in a MAYFLY_REDIS_BIN of Redis 7 = %v, %v", b, err)
	}
	t.Setenv("MAYFLY_REDIS_BIN", root)
	if b, err := find(Redis8); err == nil || errors.Is(err, errNotFound) {
		t.Errorf("find in a MAYFLY_REDIS_BIN without a server = %v, %v", b, err)
	}
}

// A verdict is how a test ended that we watch.
type verdict struct {
	testing.TB
	skipped, failed, logged string
	cleanups                []func()
}

// watch runs f with a test that can be skipped and failed without harm to t.
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
	t.Setenv("MAYFLY_REDIS_BIN", "none")
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
