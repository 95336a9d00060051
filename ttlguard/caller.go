package ttlguard

import (
	"fmt"
	"runtime"
	"strings"
)

// caller returns where the program called go-redis: the first place on the stack that is neither of this package nor go-redis's, its hooks for
// tracing included. It costs some microseconds, and is asked for only if there is something to report.
func caller() string {
	var at [64]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(2, at[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "github.com/redis/go-redis/") && !strings.HasPrefix(f.Function, here) && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}

// here begins the names of this package's functions.
const here = "github.com/mayflycache/mayfly/ttlguard."
