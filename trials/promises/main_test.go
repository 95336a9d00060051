package promises

import (
	"flag"
	"os"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

// Rows mostly wait: more of them run at once than there are processors.
func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8")
	os.Exit(processes.Main(m))
}
