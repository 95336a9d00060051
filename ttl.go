package mayfly

import (
	"time"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// The TTL guide's strategies, as a value to start from and the range to stay in. "Sliding", its fourth, is a pattern
// and not a length.
const (
	// Short is for data that changes often and for API responses.
	Short    = 2 * time.Minute
	ShortMin = 60 * time.Second
	ShortMax = 300 * time.Second

	// Medium is for user sessions and computed results.
	Medium    = time.Hour
	MediumMin = time.Hour
	MediumMax = 24 * time.Hour

	// Long is for reference data that rarely changes: days to weeks.
	Long    = 7 * 24 * time.Hour
	LongMin = 24 * time.Hour
	LongMax = 4 * 7 * 24 * time.Hour
)

const (
	// MinTTL is the shortest TTL taken: Redis counts in milliseconds. A part of a millisecond beyond it is dropped.
	MinTTL = check.MinTTL

	// MaxTTL is the longest TTL taken. Redis and time.Duration would overflow at about 292 years; a TTL over a
	// century, with room left for jitter and a stale window, is a unit that was multiplied twice.
	MaxTTL = check.MaxTTL
)

// CheckTTL returns an error that names field and value if ttl is zero, negative, under a millisecond or over [MaxTTL].
func CheckTTL(field string, ttl time.Duration) error {
	return check.TTL(field, ttl)
}
