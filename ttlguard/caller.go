package ttlguard

import (
	"fmt"
	"runtime"
	"strings"
)

// caller returns where the program called go-redis: the first function on the stack that belongs neither to this package nor to go-redis
// and its tracing hooks. It costs some microseconds, so it is called only when there is something to report.
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

// here is how the names of this package's functions begin.
const here = "github.com/mayflycache/mayfly/ttlguard."
