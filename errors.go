package mayfly

import (
	"errors"

	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/turns"
)

// The errors of all packages of mayfly. They are returned wrapped with the operation and the key: test with errors.Is.
var (
	// ErrNotFound says that there is no such value: the loader said so, now or recently, or Redis did, where it holds the only
	// copy. It never means that Redis could not be asked.
	ErrNotFound = errors.New("not found")

	// ErrClosed says that the cache or the local tier was closed before.
	ErrClosed = errors.New("closed")

	// ErrUnknownOutcome says that a write was sent and its reply was lost: it happened, or did not, or will happen once, when the
	// network delivers it. Read before you write again. A write that returned nil leaves nothing behind that could still take effect.
	ErrUnknownOutcome = errors.New("outcome unknown: the write was sent, its reply was lost")

	// ErrOverloaded says that the origin is overloaded: the load got no turn within the time that loads may take, and was not begun. See
	// Origin.
	ErrOverloaded = admission.ErrOverloaded

	// ErrLoadTimeout says that a load took longer than LoadTimeout, here or in another process.
	ErrLoadTimeout = errors.New("the load took too long")

	// ErrFailedElsewhere says that the load a call waited for failed, as the call learned from Redis: another process's load, or one of this
	// process that ended just before the call could join it. The text after it is the original error's, cut to 200 bytes; errors.Is cannot
	// find that error. A later call loads by itself.
	ErrFailedElsewhere = errors.New("the load failed elsewhere")

	// ErrCrowded says that a call was not sent because no connection of its client became free in time: LoadTimeout, in
	// cacheaside. Other calls of this process used them all that time; Redis may be fine.
	ErrCrowded = turns.ErrCrowded

	// ErrExists says that a Create or a Rotate of sliding found a value under the key.
	ErrExists = errors.New("there is a value under this key already")

	// ErrForeign says that the key holds something that the pattern never writes: another type, or a counter without a TTL. It was neither
	// read nor changed. Delete it, or give the namespace a prefix of its own.
	ErrForeign = errors.New("somebody else's, and was left alone")

	// ErrNoTTL is the error of a write that ttlguard refused because it would leave a key without a TTL. Nothing was sent.
	ErrNoTTL = errors.New("the key would have no TTL")

	// ErrLocked says that the directory of an embedded database is already open, in this process or another.
	ErrLocked = errors.New("another process has it open")
)

// PanicError is returned, wrapped, when a loader, a codec or another function passed to mayfly panicked: errors.As finds it. If the value
// is an error, errors.Is and As find that too.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where, as runtime/debug.Stack writes it
}

// Error names the value, without the stack.
func (e *PanicError) Error() string { return (*flight.PanicError)(e).Error() }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error { return (*flight.PanicError)(e).Unwrap() }
