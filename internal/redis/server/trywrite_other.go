//go:build !unix

package server

import "syscall"

func rawTryWriter(syscall.Conn) func([]byte) (int, error) { return nil }
