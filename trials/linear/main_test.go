// Package linear records what several processes do to single keys of sliding, over a network that delays, cuts, repeats and loses by
// chance, and checks that each history is linearizable: that there is an order of the calls, each at a moment between its beginning and
// its end, in which every answer is right. A call that returned mayfly.ErrUnknownOutcome may have been done, once, at any later
// moment, or not at all; one that returned another error was not done.
//
//	cd trials && go test ./linear -for 10m -seed 7
//
// The histories of caches, which promise less, are in package histories.
package linear

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

var (
	lasts = flag.Duration("for", 0, "how long histories are recorded in each way; 0 is 2 s, in the long form 20 s")
	seed  = flag.Uint64("seed", 0, "what the network does; 0 draws one")
	late  = flag.Duration("late", 12*time.Millisecond, "by how much requests and replies are late at most")
)

func TestMain(m *testing.M) { os.Exit(processes.Main(m)) }

// length is how long histories are recorded.
func length() time.Duration {
	if *lasts > 0 {
		return *lasts
	}
	return time.Duration(effort.Times(2, 20)) * time.Second
}
