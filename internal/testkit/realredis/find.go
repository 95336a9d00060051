package realredis

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
)

// A Flavour is the kind of server a test is about.
type Flavour int

const (
	Redis8 Flavour = iota // Redis 8.0 or newer, the default
	Redis7                // Redis 7.0, the oldest that is supported; it has no field TTL
	Valkey                // Valkey 8, which has no field TTL either
)

// fetch is the argument of .ci/redis that fetches the flavour, and the name of its place in the cache.
func (f Flavour) fetch() string { return [...]string{"8", "7.0", "valkey"}[f] }

// env names the variable that holds the directory of the flavour's redis-server, as .ci/redis prints it.
func (f Flavour) env() string {
	return [...]string{"MAYFLY_REDIS_BIN", "MAYFLY_REDIS7_BIN", "MAYFLY_VALKEY_BIN"}[f]
}

func (f Flavour) String() string {
	return [...]string{"Redis 8.0 or newer", "Redis 7.0", "Valkey 8"}[f]
}

func (f Flavour) fits(v Version) bool {
	switch f {
	case Redis7:
		return v.Name == "Redis" && v.Major == 7 && v.Minor == 0
	case Valkey:
		return v.Name == "Valkey" && v.Major == 8
	default:
		return v.Name == "Redis" && v.AtLeast(8, 0)
	}
}

// Version says which server it is. Numbers of different names do not compare: Valkey 8.1 is no newer than Redis 7.4.
type Version struct {
	Name                string // Redis or Valkey
	Major, Minor, Patch int
}

// AtLeast reports whether v is major.minor or newer.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

func (v Version) String() string {
	return fmt.Sprintf("%s %d.%d.%d", v.Name, v.Major, v.Minor, v.Patch)
}

// The first line of redis-server --version, and the line of INFO server. Valkey's INFO also holds the version of Redis
// it is compatible with, so it is looked for first.
var (
	isValkey = regexp.MustCompile(`(?:Valkey server v=|valkey_version:)(\d+)\.(\d+)\.(\d+)`)
	isRedis  = regexp.MustCompile(`(?:Redis server v=|redis_version:)(\d+)\.(\d+)\.(\d+)`)
)

// parseVersion reads the version from what redis-server --version prints or INFO server replies.
func parseVersion(text string) (Version, error) {
	v := Version{Name: "Valkey"}
	m := isValkey.FindStringSubmatch(text)
	if m == nil {
		v.Name = "Redis"
		m = isRedis.FindStringSubmatch(text)
	}
	if m == nil {
		return Version{}, fmt.Errorf("no version of Redis or Valkey in %.100q", text)
	}
	v.Major, _ = strconv.Atoi(m[1])
	v.Minor, _ = strconv.Atoi(m[2])
	v.Patch, _ = strconv.Atoi(m[3])
	return v, nil
}

// A binary is a redis-server that can be run.
type binary struct {
	path    string
	version Version
}

var binaries sync.Map // of path: func() (binary, error), so that each is asked for its version once

// inspect asks the redis-server at path what it is.
func inspect(path string) (binary, error) {
	if _, err := os.Stat(path); err != nil {
		return binary{}, err
	}
	once, _ := binaries.LoadOrStore(path, sync.OnceValues(func() (binary, error) {
		out, err := exec.Command(path, "--version").Output()
		if err != nil {
			return binary{}, fmt.Errorf("%s --version: %w", path, err)
		}
		v, err := parseVersion(string(out))
		return binary{path, v}, err
	}))
	return once.(func() (binary, error))()
}

var errNotFound = errors.New("not found")

// find looks in the directory that the environment names, else where .ci/redis keeps what it fetched and on PATH. A
// directory that was named and does not hold the flavour is an error.
func find(f Flavour) (binary, error) {
	if os.Getenv(Redis8.env()) == "none" {
		return binary{}, errNotFound
	}
	if dir := os.Getenv(f.env()); dir != "" {
		b, err := inspect(filepath.Join(dir, "redis-server"))
		if err != nil {
			return b, fmt.Errorf("%s: %w", f.env(), err)
		}
		if !f.fits(b.version) {
			return b, fmt.Errorf("%s must hold %v, got %v", f.env(), f, b.version)
		}
		return b, nil
	}
	var candidates []string
	if cache := cacheDir(); cache != "" {
		candidates = append(candidates, filepath.Join(cache, f.fetch(), "bin", "redis-server"))
	}
	if path, err := exec.LookPath("redis-server"); err == nil {
		candidates = append(candidates, path)
	}
	for _, path := range candidates {
		if b, err := inspect(path); err == nil && f.fits(b.version) {
			return b, nil
		}
	}
	return binary{}, errNotFound
}

// cacheDir is where .ci/redis keeps what it fetched, "" if it has no place to keep it.
func cacheDir() string {
	if dir := os.Getenv("MAYFLY_REDIS_CACHE"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "mayfly-redis")
	}
	if dir := os.Getenv("HOME"); dir != "" {
		return filepath.Join(dir, ".cache", "mayfly-redis")
	}
	return ""
}

// need finds a binary or ends the test.
func need(t testing.TB, f Flavour) binary {
	t.Helper()
	b, err := find(f)
	if errors.Is(err, errNotFound) {
		skip(t, fmt.Sprintf("no %v in %s, %q or PATH; `.ci/redis %s` fetches one (then go test -count=1)",
			f, f.env(), cacheDir(), f.fetch()))
	}
	if err != nil {
		t.Fatalf("realredis: %v", err)
	}
	return b
}

// Tool returns the path of a program that comes with the flavour's server: redis-cli, redis-benchmark or redis-check-aof.
// Without it the test is skipped, as without a server.
func Tool(t testing.TB, f Flavour, name string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(need(t, f).path), name)
	if _, err := os.Stat(path); err != nil {
		skip(t, fmt.Sprintf("no %s beside redis-server: %v", name, err))
	}
	return path
}

// skip skips the test on a line that can be found and counted, or fails it where Redis is required.
func skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("MAYFLY_REQUIRE_REDIS") == "1" {
		t.Fatalf("realredis: MAYFLY_REQUIRE_REDIS=1, but %s", why)
	}
	t.Skipf("SKIPPED-NO-REDIS %s: %s", t.Name(), why)
}
