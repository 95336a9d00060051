package realserver

import (
	"os"
	"os/exec"
	"syscall"
)

func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// awaitStopped returns when all threads of p have stopped: the signal takes effect a little after kill returns.
func awaitStopped(p *os.Process) {
	const idIsPID = 1 // P_PID
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, idIsPID, uintptr(p.Pid), 0, syscall.WSTOPPED|syscall.WNOWAIT, 0, 0)
		if err != syscall.EINTR {
			return
		}
	}
}
