// Package chaos has four processes work on a Redis and on a Redis Cluster, each by a proxy that delays, cuts, loses and holds requests,
// while processes are killed and stopped, and servers are emptied, restarted, short of memory, failed over, and lose their slots to
// others. What must never be: a key without an end, a goroutine that is left, and a read that a call promised against.
//
//	eval "$(.ci/programs)" && cd trials && go test -v ./chaos -for 1h -seed 7
//
// The seed fixes the order of the faults, and what the network does to the n-th command of each kind of each process.
package chaos

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

var (
	lasts = flag.Duration("for", 0, "how long faults are made; 0 is 20 s, in the long form 3 minutes")
	seed  = flag.Uint64("seed", 0, "the order of the faults; 0 draws one")
	late  = flag.Duration("late", 60*time.Millisecond, "by how much requests and replies are late at most")
)

func init() { processes.Roles["worker"] = worker }

func TestMain(m *testing.M) { os.Exit(processes.Main(m)) }

// length is how long faults are made.
func length() time.Duration {
	if *lasts > 0 {
		return *lasts
	}
	return time.Duration(effort.Times(20, 180)) * time.Second
}
