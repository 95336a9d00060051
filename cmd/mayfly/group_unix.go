//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endsWhole kills cmd's child processes along with it when its context ends: killing go test alone leaves its tests running.
func endsWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
