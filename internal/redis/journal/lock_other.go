//go:build !unix

package journal

import (
	"fmt"
	"os"
	"runtime"
)

// tryLock would lock an open file for this process.
func tryLock(*os.File) (bool, error) {
	return false, fmt.Errorf("a journal cannot be locked on %s", runtime.GOOS)
}

func syncDir(string) error { return nil }
