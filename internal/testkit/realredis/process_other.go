//go:build !linux

package realredis

import (
	"os"
	"os/exec"
)

func dieWithParent(*exec.Cmd) {}

func awaitStopped(*os.Process) {}
