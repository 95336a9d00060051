//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endsWhole makes the end of cmd's context end also what cmd has started: go test leaves its tests running when it alone is killed.
func endsWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
