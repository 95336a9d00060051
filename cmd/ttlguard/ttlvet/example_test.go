package ttlvet_test

import (
	"flag"
	"fmt"

	"github.com/mayflycache/mayfly/cmd/ttlguard/ttlvet"
)

// A program that runs several analyzers hands this one to multichecker.Main among them. These are its flags.
func Example() {
	fmt.Println(ttlvet.Analyzer.Name)
	ttlvet.Analyzer.Flags.VisitAll(func(f *flag.Flag) { fmt.Printf("-%s: %s\n", f.Name, f.Usage) })
	// Output:
	// ttlguard
	// -intests: also report calls in _test.go files
	// -sure: report only calls that leave a key without a TTL in any case, such as Set with 0, and not those that keep one, such as Incr
}
