//go:build !unix

package journal

import (
	"fmt"
	"os"
	"runtime"
)

// tryLock always fails: files cannot be locked on this system.
func tryLock(*os.File) (bool, error) {
	return false, fmt.Errorf("a journal cannot be locked on %s", runtime.GOOS)
}

func syncDir(string) error { return nil }
