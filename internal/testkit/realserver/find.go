package realserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// A Flavour is the kind of server that a test is about.
type Flavour int

const (
	Redis8  Flavour = iota // Redis 8.0 or newer, the default
	Redis86                // Redis 8.6 or a close successor: not available everywhere, so no test insists on it
	Redis7                 // Redis 7.0, the oldest version supported; it has no field TTL
	Valkey                 // Valkey 8, which has no field TTL either
)

var flavours = [...]struct {
	name     string
	variable string // names the directory of its programs
	get      string // prints that directory
	fits     func(Version) bool
	optional bool // MAYFLY_REQUIRE_REDIS does not require it
}{
	Redis8:  {"Redis 8.0 or newer", "MAYFLY_REDIS_BIN", ".ci/redis", func(v Version) bool { return v.Name == "Redis" && v.Major >= 8 }, false},
	Redis86: {"Redis 8.6", "MAYFLY_REDIS86_BIN", ".ci/redis 8.6", func(v Version) bool { return v.Name == "Redis" && v.Major == 8 && v.Minor >= 2 }, true},
	Redis7:  {"Redis 7.0", "MAYFLY_REDIS7_BIN", ".ci/redis 7.0", func(v Version) bool { return v.Name == "Redis" && v.Major == 7 && v.Minor == 0 }, false},
	Valkey:  {"Valkey 8", "MAYFLY_VALKEY_BIN", ".ci/redis valkey", func(v Version) bool { return v.Name == "Valkey" && v.Major == 8 }, false},
}

func (f Flavour) String() string { return flavours[f].name }

// HasFieldTTL reports whether the flavour supports TTLs of hash fields.
func (f Flavour) HasFieldTTL() bool { return f == Redis8 || f == Redis86 }

// Version identifies a server.
type Version struct {
	Name                string // Redis or Valkey
	Major, Minor, Patch int
}

func (v Version) String() string {
	return fmt.Sprintf("%s %d.%d.%d", v.Name, v.Major, v.Minor, v.Patch)
}

var versionLine = regexp.MustCompile(`(Redis|Valkey) server v=(\d+)\.(\d+)\.(\d+)`)

// parseVersion reads the version from the output of redis-server --version.
func parseVersion(text string) (Version, error) {
	m := versionLine.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("no version of Redis or Valkey in %.100q", text)
	}
	v := Version{Name: m[1]}
	for i, number := range []*int{&v.Major, &v.Minor, &v.Patch} {
		*number, _ = strconv.Atoi(m[2+i])
	}
	return v, nil
}

// A binary is a redis-server that can be run.
type binary struct {
	path    string
	version Version
}

// need returns the redis-server that the environment names for the flavour. Without one it skips the test with a line that can be found and
// counted, or fails it if Redis is required. A directory with another flavour fails the test.
func need(t testing.TB, f Flavour) binary {
	t.Helper()
	flavour := flavours[f]
	dir := os.Getenv(flavour.variable)
	if dir == "" {
		why := fmt.Sprintf("no %v: export %s=$(%s)", f, flavour.variable, flavour.get)
		if os.Getenv("MAYFLY_REQUIRE_REDIS") == "1" && !flavour.optional {
			t.Fatalf("realserver: MAYFLY_REQUIRE_REDIS=1, but %s", why)
		}
		t.Skipf("SKIPPED-NO-REDIS %s: %s", t.Name(), why)
	}
	path := filepath.Join(dir, "redis-server")
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatalf("realserver: %s: %s --version: %v", flavour.variable, path, err)
	}
	version, err := parseVersion(string(out))
	if err != nil || !flavour.fits(version) {
		t.Fatalf("realserver: %s must hold %v, got %v (%v)", flavour.variable, f, version, err)
	}
	return binary{path, version}
}

// Tool returns the path of a program that comes with the flavour's server: redis-cli, redis-benchmark or redis-check-aof. Without a server
// the test is skipped.
func Tool(t testing.TB, f Flavour, name string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(need(t, f).path), name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("realserver: no %s beside redis-server: %v", name, err)
	}
	return path
}
