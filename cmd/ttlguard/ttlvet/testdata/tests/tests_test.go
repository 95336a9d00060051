package tests

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestWrites(t *testing.T) {
	redis.NewClient(&redis.Options{}).Set(context.Background(), "a", 1, 0) // want `Set: an expiration of 0`
}
