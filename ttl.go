package mayfly

import (
	"fmt"
	"time"
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
	MinTTL = time.Millisecond

	// MaxTTL is the longest TTL taken. Redis and time.Duration would overflow at about 292 years; a TTL over a
	// century, with room left for jitter and a stale window, is a unit that was multiplied twice.
	MaxTTL = 100 * 365 * 24 * time.Hour
)

// CheckTTL returns an error that names field and value if ttl is zero, negative, under a millisecond or over [MaxTTL].
func CheckTTL(field string, ttl time.Duration) error {
	switch {
	case 0 < ttl && ttl < MinTTL:
		return fmt.Errorf("%s must be at least 1ms, got %v: a bare number counts nanoseconds, write 10*time.Second", field, ttl)
	case ttl < MinTTL:
		return fmt.Errorf("%s must be at least 1ms, got %v", field, ttl)
	case ttl > MaxTTL:
		return fmt.Errorf("%s must be at most %v (100 years), got %v", field, MaxTTL, ttl)
	}
	return nil
}
