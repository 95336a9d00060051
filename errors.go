package mayfly

import (
	"errors"

	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/turns"
)

// The errors that the packages of mayfly share. They are returned wrapped with the operation and the key: test with errors.Is.
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

	// ErrCrowded says that a call was not sent, as it has waited for the connections of its client as long as it may: Load.Timeout, of
	// cacheaside. Other calls of this process had them all that time; Redis may be fine.
	ErrCrowded = turns.ErrCrowded

	// ErrForeign says that the key holds what the pattern never wrote: another type, or a counter without a TTL. It was neither read
	// nor changed. Delete it, or give the namespace a prefix of its own.
	ErrForeign = errors.New("somebody else's, and was left alone")

	// ErrUnsupported says that the server lacks a command; the text around it names the server's version.
	ErrUnsupported = errors.New("not supported by this server")
)
