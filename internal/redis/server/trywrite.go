package server

import "net"

// tryWriter returns a function that writes what nc accepts without waiting, or nil if nc cannot do that. It knows a few types of connections;
// any other type may change what passes through its Write.
func tryWriter(nc net.Conn) func([]byte) (int, error) {
	switch nc := nc.(type) {
	case *pipe:
		return nc.tryWrite
	case *net.TCPConn:
		return rawTryWriter(nc)
	case *net.UnixConn:
		return rawTryWriter(nc)
	}
	return nil
}
