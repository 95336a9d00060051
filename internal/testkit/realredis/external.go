package realredis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// external is a database of the server of REDIS_ADDR, which is not ours: nobody has given us leave to flush it.
//
// Tests run at the same time, in several processes, so a database is claimed: by a key of database 0 that expires, the
// only trace outside. A claimed database that is empty is the test's, and is flushed before the claim is given up. One that
// is not empty belongs to somebody and is passed over; so is what a killed test left behind.
type external struct {
	addr string
	db   int
}

const claimTTL = 15 * time.Minute // beyond the ten minutes that go test gives a package

// attach claims an empty database of the server at addr.
func attach(t testing.TB, addr string) *Server {
	t.Helper()
	s := &Server{t: t, external: &external{addr: addr}}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()

	root := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { root.Close() })
	info, err := root.Info(ctx, "server").Result()
	if err != nil {
		t.Fatalf("realredis: REDIS_ADDR=%s: %v", addr, err)
	}
	if s.binary.version, err = parseVersion(info); err != nil {
		t.Fatalf("realredis: REDIS_ADDR=%s: %v", addr, err)
	}
	if !Redis8.fits(s.binary.version) {
		t.Fatalf("realredis: REDIS_ADDR must name a %v, got %v at %s", Redis8, s.binary.version, addr)
	}
	until(ctx, func() error {
		if err = s.claim(ctx, root); err == errBusy {
			return err // other tests will be done soon
		}
		return nil
	})
	if err != nil {
		t.Fatalf("realredis: REDIS_ADDR=%s: %v", addr, err)
	}
	t.Logf("REAL-REDIS found %v at %s, database %d", s.Version(), addr, s.external.db)
	return s
}

var (
	errBusy = errors.New("other tests hold all databases that were empty")
	errFull = errors.New("no database but 0 is empty: FLUSHDB one that can be spared")
)

// claim takes the first database that is free. Those after 0 are tried until the server says there is no such one.
func (s *Server) claim(ctx context.Context, root *redis.Client) error {
	none := errFull
	for db := 1; ; db++ {
		key, token := fmt.Sprintf("mayfly-realredis:claim:%d", db), rand.Text()
		won, err := root.SetNX(ctx, key, token, claimTTL).Result()
		if err != nil {
			return err
		}
		if !won {
			none = errBusy
			continue
		}
		rdb := redis.NewClient(&redis.Options{Addr: s.external.addr, DB: db})
		size, err := rdb.DBSize(ctx).Result()
		if err == nil && size == 0 {
			s.external.db = db
			s.t.Cleanup(func() {
				defer rdb.Close()
				if root.Get(context.Background(), key).Val() != token {
					s.t.Errorf("realredis: lost the claim on database %d of REDIS_ADDR; it is not flushed", db)
					return
				}
				if err := rdb.FlushDB(context.Background()).Err(); err != nil {
					s.t.Errorf("realredis: flush database %d of REDIS_ADDR: %v", db, err)
				}
				root.Del(context.Background(), key)
			})
			return nil
		}
		rdb.Close()
		root.Del(ctx, key)
		if err != nil && strings.Contains(err.Error(), "out of range") {
			return none
		}
		if err != nil {
			return err
		}
	}
}
