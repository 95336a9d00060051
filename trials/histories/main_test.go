// Package histories has several processes work on a few keys, as caches do, over a network that delays, cuts, repeats and loses by chance.
// What every call did is recorded, and each history is held against what the package promises: of cacheaside and httpcache, that who
// begins after a Delete or Purge that returned nil gets nothing older. The histories of sliding, which promises more, are in package
// linear.
//
//	cd trials && go test ./histories -for 10m -seed 7
//
// The seed fixes what the network does to the n-th command of each kind, not how goroutines take turns.
package histories

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

var (
	lasts = flag.Duration("for", 0, "how long each history takes; 0 is a quarter of a second, 1 s beside real servers, 20 s in the long form")
	seed  = flag.Uint64("seed", 0, "what the network does; 0 draws one")
	late  = flag.Duration("late", 15*time.Millisecond, "by how much requests and replies are late at most")
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "12") // they mostly wait
	os.Exit(processes.Main(m, "mayfly/cacheaside.(*", "mayfly/httpcache.(*"))
}

// length is how long a history takes.
func length() time.Duration {
	if *lasts > 0 {
		return *lasts
	}
	if os.Getenv("MAYFLY_REDIS_BIN") == "" { // a plain run
		return 250 * time.Millisecond
	}
	return time.Duration(effort.Times(1, 20)) * time.Second
}
