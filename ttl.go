package mayfly

import (
	"time"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// The TTL guide's strategies, as values to start from. "Sliding", its fourth, is a pattern and not a length.
const (
	// ShortTTL is for data that changes often and for API responses; the guide's range is 60 to 300 s.
	ShortTTL = 2 * time.Minute

	// MediumTTL is for user sessions and computed results; the guide's range is 1 to 24 hours.
	MediumTTL = time.Hour

	// LongTTL is for reference data that rarely changes; the guide says days to weeks.
	LongTTL = 7 * 24 * time.Hour
)

const (
	// MinTTL is the shortest valid TTL: Redis counts in milliseconds. Fractions of a millisecond are dropped.
	MinTTL = check.MinTTL

	// MaxTTL is the longest valid TTL. Redis and time.Duration would overflow at about 292 years; a TTL over a
	// century, with room left for jitter and a stale window, is a unit that was multiplied twice.
	MaxTTL = check.MaxTTL
)
