// Package embedded is a Redis 8.0 inside the program, for programs that have no Redis yet. Commands, errors and expiry are those of
// Redis; the data is in this process's memory.
//
//	db, err := embedded.Open(embedded.Options{MaxMemory: 64 << 20, Policy: "allkeys-lru"})
//	defer db.Close(ctx)
//	rdb := db.Client() // a *redis.Client, to be used like any other
//
// Code that uses the client works unchanged on a real Redis later. The data is lost when the program ends, unless Options.Dir names a place
// for it; other programs reach it only through Serve. docs/growing.md describes the way from here to Redis.
package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/journal"
	"github.com/mayflycache/mayfly/internal/redis/replica"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// Options set up a DB. The zero value has no password and no memory limit.
type Options struct {
	// Password is what connections through Serve must send with AUTH, as with Redis's requirepass; empty: none. Client sends it by itself.
	Password string

	// MaxMemory limits the data in bytes, as Redis's maxmemory counts them; 0: no limit.
	MaxMemory int64

	// Policy says which keys are evicted when MaxMemory is reached, as with Redis's maxmemory-policy: noeviction (the default: writes that
	// need memory are answered with -OOM), allkeys-lru, allkeys-lfu, allkeys-random, volatile-ttl, volatile-lru, volatile-lfu,
	// volatile-random.
	Policy string

	// Hz, if not 0, removes expired keys in Redis's documented cycle, this many times a second, 1 to 500, instead of each at its deadline.
	// Either way an expired key cannot be read.
	Hz int

	// Dir, if not empty, keeps the data in files of this directory, which is created if missing: everything written is there when the program
	// starts again, except what has expired meanwhile. The files are those of Redis with appendonly yes: a Redis 7 or later can be started on
	// them, or may have written them. Only one process at a time can open a directory. Empty: the data are lost at Close.
	Dir string

	// Fsync says when writes are safe from a crash of the machine, as with Redis's appendfsync: always (before they are acknowledged),
	// everysec (within a second; the default), no (when the operating system decides). If only the program dies, always loses nothing that
	// was acknowledged, and the others lose the last moment, at most a second.
	Fsync string

	// ReplicaOf, host:port, makes the DB a replica of a Redis 7 or later, or of another DB that is served. Empty follows none. The replica gets
	// all keys and values with their deadlines, and then everything that the master does. It hides expired keys, and removes them when the
	// master does; writes to it are refused with READONLY. A broken link is made again: what was missed comes from the master's backlog if that
	// reaches back far enough, otherwise all data are sent again. With Dir the data are also kept on disk.
	//
	// A master with data that the engine does not support (streams, modules, functions) cannot be followed: the DB keeps what it has, and
	// Replication and InStep say why.
	ReplicaOf string

	// MasterUsername and MasterPassword are sent to the master by AUTH. An empty name is the default user.
	MasterUsername, MasterPassword string

	// MasterTLS, if not nil, secures the link. An empty ServerName means the host of ReplicaOf. It also applies to masters named by REPLICAOF.
	MasterTLS *tls.Config
}

func (o Options) validate() error {
	switch {
	case o.MaxMemory < 0:
		return fmt.Errorf("embedded: Options.MaxMemory must not be negative, got %d", o.MaxMemory)
	case o.Policy != "" && !slices.Contains(engine.Policies, o.Policy):
		return fmt.Errorf("embedded: Options.Policy must be one of %s, got %q", strings.Join(engine.Policies, ", "), o.Policy)
	case o.Hz < 0 || o.Hz > 500:
		return fmt.Errorf("embedded: Options.Hz must be between 0 and 500, got %d", o.Hz)
	case o.Fsync != "" && !slices.Contains(journal.Policies, o.Fsync):
		return fmt.Errorf("embedded: Options.Fsync must be one of %s, got %q", strings.Join(journal.Policies, ", "), o.Fsync)
	case o.Fsync != "" && o.Dir == "":
		return fmt.Errorf("embedded: Options.Fsync is %q, but there is no Options.Dir to write to", o.Fsync)
	case o.checkMaster() != nil:
		return o.checkMaster()
	case len(o.Password) > 512:
		return fmt.Errorf("embedded: Options.Password must have at most 512 bytes, got %d", len(o.Password))
	}
	return nil
}

// DB is an open database. Its methods are safe for concurrent use.
type DB struct {
	// Recovered says what Open found in Options.Dir.
	Recovered struct {
		Keys  int // present at the end of Open
		Ended int // expired while nothing ran, and removed

		// What a crash left of a write that was never acknowledged as safe. It was cut off: how many bytes, of which file, at which position.
		Cut     int64
		CutFile string
		CutAt   int64
	}

	server  *server.Server
	client  *redis.Client
	journal *journal.Journal // nil: nothing is kept
	link    *replica.Link

	closing sync.Once
	closed  error
}

// Open opens a database: an empty one or, with Options.Dir, the data kept there. A damaged file is an error that says where, and nothing is
// changed; the incomplete end of a write that a crash cut short is removed, and DB.Recovered reports it. The error for a Dir that is open
// already, in this process or another, is [mayfly.ErrLocked].
func Open(o Options) (*DB, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	eo := engine.Options{Password: o.Password, MaxMemory: o.MaxMemory, Policy: o.Policy, Hz: o.Hz}
	if o.Hz > 0 {
		eo.Cycle = engine.Documented
	}
	db, e, so := &DB{}, engine.New(eo), server.Options{}
	if o.Dir != "" {
		var err error
		db.journal, db.Recovered, err = journal.Open(journal.Options{Dir: o.Dir, Fsync: o.Fsync}, e, func() int64 { return time.Now().UnixMicro() })
		if err != nil {
			return nil, fmt.Errorf("embedded: %w", public{err})
		}
		so.Keeper = db.journal
	}
	s, err := server.New(e, so)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: %w", err), db.closeJournal())
	}
	if db.journal != nil {
		db.journal.Begin(s.Do)
	}
	lo := replica.Options{Do: s.Do, Journal: db.journal, Dial: o.dialMaster()}
	if db.link, err = replica.New(lo); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: %w", err), db.closeJournal())
	}
	o.follow(s, db.link)
	db.server, db.client = s, redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:6379", // nobody listens there: Dialer is asked. A name would be looked up.
		Dialer:                   s.Dial,
		Password:                 o.Password,
		PoolSize:                 poolSize,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return db, nil
}

// public makes an error of the journal match [mayfly.ErrLocked] if the directory is locked.
type public struct{ error }

func (p public) Is(target error) bool {
	return target == mayfly.ErrLocked && errors.Is(p.error, journal.ErrLocked)
}

func (p public) Unwrap() error { return p.error }

func (db *DB) closeJournal() error {
	if db.journal == nil {
		return nil
	}
	return db.journal.Close()
}

// poolSize exceeds the callers of most programs: an in-memory connection is cheap, but waiting for one is not, and in a synctest bubble
// go-redis would wait on a timer that belongs to another bubble.
const poolSize = 500

// Client returns the program's own in-memory client, the same at every call. Close closes it.
func (db *DB) Client() *redis.Client { return db.client }

// Serve lets other programs in: it accepts connections from l, over TCP or a unix socket, until the DB or l is closed, and closes l. It returns
// nil if the DB was closed.
func (db *DB) Serve(l net.Listener) error {
	if l == nil {
		return errors.New("embedded: Serve needs a listener, got nil: make one with net.Listen")
	}
	if err := db.server.Serve(l); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return nil
}

// Stats says what the DB holds, and what it has done since it was opened. Call it now and then, not for every request: without a MaxMemory
// it weighs every key.
func (db *DB) Stats() mayfly.EngineStats {
	f, cycle := db.server.Figures()
	return mayfly.EngineStats{
		Keys: f.Keys, Expires: f.Expires, Dead: f.Dead, Memory: f.Memory, Expired: f.Expired, Evicted: f.Evicted,
		Commands: f.Commands, Hits: f.Hits, Misses: f.Misses, Cycle: cycle,
	}
}

// Close closes the client, lets other clients' commands that have arrived finish, and closes their connections; if ctx ends first, they are
// cut, and Close returns ctx's error. With Options.Dir all writes are then safe on disk, or the error says that they are not. When Close
// returns, no goroutine is left, and without Dir the data is gone. Closing again returns what the first Close did. A nil context is an error,
// and nothing is closed.
func (db *DB) Close(ctx context.Context) error {
	if ctx == nil {
		return errors.New("embedded: Close needs a context, got nil: context.Background() waits as long as it takes")
	}
	db.closing.Do(func() {
		db.link.Close()
		db.closed = errors.Join(db.client.Close(), db.server.Close(ctx), db.closeJournal())
	})
	return db.closed
}
