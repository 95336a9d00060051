package mayfly

import (
	"errors"

	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/turns"
)

// The errors of all packages of mayfly. They are returned wrapped with the operation and the key: test with errors.Is.
var (
	// ErrNotFound says that there is no such value: the loader said so, now or lately, or, where Redis holds the only copy,
	// Redis did. It never means that Redis could not be asked.
	ErrNotFound = errors.New("not found")

	// ErrClosed says that Close was called before, of the cache or the local tier.
	ErrClosed = errors.New("closed")

	// ErrUnknownOutcome says that a write was sent and its reply was lost: it happened, or it did not, or it will, once, when the
	// network delivers it. Read before you write again. A write that returned nil leaves nothing that could still come.
	ErrUnknownOutcome = errors.New("outcome unknown: the write was sent, its reply was lost")

	// ErrOverloaded says that the origin has more to do than it can, and that a load got no turn within the time that loads may take. It was
	// not begun. See Origin.
	ErrOverloaded = admission.ErrOverloaded

	// ErrLoadTimeout says that a load took longer than Load.Timeout, here or in another process.
	ErrLoadTimeout = errors.New("the load took too long")

	// ErrFailedElsewhere says that the load which a call waited for failed, and the call learned it from Redis: the load was another
	// process's, or one of this process that ended just before the call could join it. The text after it is that of the error there, cut
	// to 200 bytes; what the error was cannot be asked of it. A call that begins later loads by itself.
	ErrFailedElsewhere = errors.New("the load failed elsewhere")

	// ErrCrowded says that a call was not sent, as it has waited for the connections of its client as long as it may: Load.Timeout, of
	// cacheaside. Other calls of this process had them all that time; Redis may be fine.
	ErrCrowded = turns.ErrCrowded

	// ErrExists says that a Create or a Rotate of sliding found a value under the key.
	ErrExists = errors.New("there is a value under this key already")

	// ErrForeign says that the key holds what the pattern never wrote: another type, or a counter without a TTL. It was neither read
	// nor changed. Delete it, or give the namespace a prefix of its own.
	ErrForeign = errors.New("somebody else's, and was left alone")

	// ErrUnsupported says that the server lacks a command; the text around it names the server's version.
	ErrUnsupported = errors.New("not supported by this server")

	// ErrNoTTL is the error of a write that ttlguard refused because it would leave a key without an end. Nothing was sent.
	ErrNoTTL = errors.New("the key would have no TTL")

	// ErrLocked says that the directory of an embedded database is open already, in this process or another.
	ErrLocked = errors.New("another process has it open")
)

// PanicError is what a call returns, wrapped, when a loader, a codec or another function that it was given panicked: errors.As finds
// it. If the value is an error, errors.Is and As find that, too.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where, as runtime/debug.Stack writes it
}

// Error names the value; the stack is left to who wants it.
func (e *PanicError) Error() string { return (*flight.PanicError)(e).Error() }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error { return (*flight.PanicError)(e).Unwrap() }
