//go:build unix && !linux

package realredis

import (
	"os"
	"os/exec"
	"syscall"
)

const sigstop, sigcont = syscall.SIGSTOP, syscall.SIGCONT

func dieWithParent(*exec.Cmd) {}

func awaitStopped(*os.Process) {}
