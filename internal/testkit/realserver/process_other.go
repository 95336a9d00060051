//go:build !linux

package realserver

import (
	"os"
	"os/exec"
)

func dieWithParent(*exec.Cmd) {}

func awaitStopped(*os.Process) {}
