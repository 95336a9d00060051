//go:build !unix

package realredis

import (
	"os"
	"os/exec"
	"syscall"
)

// There is no pausing here: sending either is an error.
const sigstop, sigcont = syscall.Signal(-1), syscall.Signal(-1)

func dieWithParent(*exec.Cmd) {}

func awaitStopped(*os.Process) {}
