package mayfly

import "errors"

// The errors every package of mayfly shares. They arrive wrapped with the operation and the key: test with errors.Is.
var (
	// ErrNotFound says that the origin has no such thing. A loader returns it, a lookup returns it, and a remembered
	// miss is it. It never means that Redis could not be asked.
	ErrNotFound = errors.New("not found")

	// ErrClosed says that the thing asked was closed before.
	ErrClosed = errors.New("closed")

	// ErrUnknownOutcome says that a write was sent and its reply was lost: it may have happened. Where Redis holds
	// the only copy the caller must look before it writes again.
	ErrUnknownOutcome = errors.New("outcome unknown: the write was sent, its reply was lost")

	// ErrUnsupported says that the server lacks a command; the text around it names the server's version.
	ErrUnsupported = errors.New("not supported by this server")
)
