//go:build unix

package server

import "syscall"

func rawTryWriter(c syscall.Conn) func([]byte) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	var (
		b      []byte
		n      int
		failed error
	)
	// Made once: a closure for every write would be an allocation for every write.
	attempt := func(fd uintptr) bool {
		for {
			n, failed = syscall.Write(int(fd), b)
			if failed != syscall.EINTR {
				return true // even when the socket's buffer is full: RawConn must not wait
			}
		}
	}
	return func(p []byte) (int, error) {
		b, n, failed = p, 0, nil
		err := raw.Write(attempt)
		b = nil
		switch {
		case err != nil:
			return 0, err
		case failed == syscall.EAGAIN:
			return 0, nil
		}
		return max(n, 0), failed
	}
}
