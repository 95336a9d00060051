package fieldttl

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// A way is how a server writes fields with a TTL.
type way uint8

const (
	together way = iota // HSETEX, HGETEX: Redis 8.0
	apart               // HSET and HPEXPIRE in a transaction: Redis 7.4
)

// server is what was found out about the server at its first use.
type server struct{ found atomic.Pointer[finding] }

type finding struct {
	way way
	err error // why it has no way
}

// way returns how the server of full writes. If the server does not answer, the next use asks it again.
func (s *server) way(ctx context.Context, rdb sendonce.Bounded, full string) (way, error) {
	f := s.found.Load()
	if f == nil {
		var err error
		if f, err = ask(ctx, rdb, full); err != nil {
			return 0, err
		}
		s.found.Store(f)
	}
	return f.way, f.err
}

// forget makes the next use ask again if err shows that the server has changed, for example by a failover during an upgrade.
func (s *server) forget(err error) {
	if err != nil && strings.Contains(err.Error(), "unknown command") {
		s.found.Store(nil)
	}
}

// ask sends commands without arguments: a server that knows a command complains about the missing arguments, whatever the key and the
// user's rights.
func ask(ctx context.Context, rdb sendonce.Bounded, full string) (*finding, error) {
	hsetex, hpexpire := redis.NewCmd(ctx, "hsetex", full), redis.NewCmd(ctx, "hpexpire", full)
	rdb.Ask(ctx, full, hsetex, hpexpire)
	for _, cmd := range []*redis.Cmd{hsetex, hpexpire} {
		var reply redis.Error
		if !errors.As(cmd.Err(), &reply) {
			return nil, fmt.Errorf("ask the server what it supports: %w", cmd.Err())
		}
	}
	switch has := func(c *redis.Cmd) bool { return redis.HasErrorPrefix(c.Err(), "wrong number of arguments") }; {
	case has(hsetex) && has(hpexpire):
		return &finding{way: together}, nil
	case has(hpexpire):
		return &finding{way: apart}, nil
	case !redis.HasErrorPrefix(hpexpire.Err(), "unknown command"):
		return nil, fmt.Errorf("ask the server what it supports: %w", hpexpire.Err())
	}
	version, err := versionOf(ctx, rdb, full)
	if err != nil {
		return nil, err
	}
	return &finding{err: fmt.Errorf("%w: %s has no field TTLs, which need Redis 7.4 or newer", errors.ErrUnsupported, version)}, nil
}

var versions = regexp.MustCompile(`(?m)^(redis|valkey)_version:(\S+)`)

// versionOf names the server that has full.
func versionOf(ctx context.Context, rdb sendonce.Bounded, full string) (string, error) {
	asked := redis.NewStringCmd(ctx, "info", "server")
	rdb.Ask(ctx, full, asked)
	info, err := asked.Result()
	var reply redis.Error
	if err != nil && !errors.As(err, &reply) {
		return "", err
	}
	name := "a server that does not tell its version"
	for _, m := range versions.FindAllStringSubmatch(info, -1) { // Valkey also names the Redis version that it is compatible with
		if name = "Redis " + m[2]; m[1] == "valkey" {
			return "Valkey " + m[2], nil
		}
	}
	return name, nil
}
