package realserver

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// After the last test no goroutine of a server is left, and no server.
func TestMain(m *testing.M) {
	goroutines := runtime.NumGoroutine()
	code := m.Run()
	deadline := time.Now().Add(patience)
	for runtime.NumGoroutine() > goroutines && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if runtime.NumGoroutine() > goroutines {
		fmt.Println("goroutines were left behind:")
		pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
		code = 1
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/children") // none where there is no /proc
	for _, task := range tasks {
		if children, _ := os.ReadFile(task); len(children) > 0 {
			fmt.Printf("processes were left behind: %s\n", children)
			code = 1
		}
	}
	os.Exit(code)
}
