package journal

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // tests are short: a quarter of their time was collecting garbage
	os.Exit(m.Run())
}
