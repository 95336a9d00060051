package ttlvet_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/mayflycache/mayfly/cmd/ttlguard/ttlvet"
)

// The packages of testdata say what is found in them, at each line.
func TestFindings(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), ttlvet.Analyzer, "./writes", "./following", "./excuses", "./helpers/...")
}

func TestSure(t *testing.T) {
	set(t, "sure")
	analysistest.Run(t, analysistest.TestData(), ttlvet.Analyzer, "./fewer")
}

func TestInTests(t *testing.T) {
	set(t, "intests")
	analysistest.Run(t, analysistest.TestData(), ttlvet.Analyzer, "./tests")
}

// set sets a flag for the length of a test.
func set(t *testing.T, name string) {
	t.Helper()
	if err := ttlvet.Analyzer.Flags.Set(name, "true"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ttlvet.Analyzer.Flags.Set(name, "false") })
}
