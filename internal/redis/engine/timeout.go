package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// waitUntil reads argument i as a timeout in seconds and returns the unix millisecond in which it ends; 0 for a timeout of 0, which never does.
func (c *call) waitUntil(i int) (ms int64) {
	seconds, ok := values.ParseFloat(c.args[i])
	span := math.Ceil(seconds * 1000)
	switch {
	case !ok:
		c.fail(errTimeout)
	case span >= math.MaxInt64 || int64(span) > math.MaxInt64-c.e.ms:
		c.fail("ERR timeout is out of range")
	case span < 0:
		c.fail(errTimeoutSign)
	case span > 0:
		return c.e.ms + int64(span)
	}
	return 0
}
