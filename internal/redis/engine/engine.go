package engine

import (
	"math/rand/v2"

	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/glob"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// Databases is the number of databases of an engine, Redis's default.
const Databases = 16

// Options set up an engine. The zero value is a Redis without a password that reaps keys by the index of deadlines.
type Options struct {
	Password  string          // what AUTH and HELLO must send; empty: no authentication
	Cycle     Cycle           // how to find dead keys that no command touches
	Hz        int             // cycles a second with Documented, 1 to 500; 0: 10
	Seed      uint64          // of every random choice; 0: different for every engine
	MaxMemory int64           // bytes; 0: no limit
	Policy    string          // which keys to evict at the limit, one of Policies; empty: noeviction
	Cluster   *ClusterOptions // non-nil: one node of a cluster
	Seeming   *Cluster        // non-nil, without Cluster: CLUSTER answers as the first node of this one; nothing else behaves as in a cluster
	Protected bool            // Redis's protected-mode: without a password, other hosts are turned away
}

// Cycle is a way of finding dead keys that no command touches.
type Cycle uint8

const (
	// ByDeadline reaps every key in the millisecond after its deadline, found by the index of deadlines.
	ByDeadline Cycle = iota
	// Documented samples keys as the documentation of EXPIRE describes and Redis does, for callers who want Redis's timing.
	Documented
)

// Outcome says what became of a command.
type Outcome uint8

const (
	Done    Outcome = iota // the reply is in the session's Out
	Blocked                // the session waits and may run nothing; Dirty will name it when its reply has come
	Yielded                // a script ran out of its time slice; call Resume
	Stalled                // DEBUG SLEEP: the reply is in Out, but nothing is sent or run until StalledUntil
	Close                  // send Out, then close the connection
)

// Engine is the keyspace and everything around it. It is not safe for concurrent use: the owner holds one lock around every call.
type Engine struct {
	options  Options
	settings settings
	limits   values.Limits
	stats    stats
	rng      rand.PCG

	now int64 // unix microseconds: when the running command began. It stands still during a command, a transaction or a script.
	ms  int64 // the same in milliseconds, the unit of deadlines

	dbs      [Databases]*db
	sessions map[int64]*Session
	lastID   int64
	current  *Session // whose command runs
	dirty    []*Session
	handed   []*Session // the slice that Dirty returned last, for reuse
	calls    []*call    // free, for reuse

	pause   pause
	waits   expiry.Index // the deadlines of blocked sessions, by waiter slot
	waiters []*waiter
	ready   []readyKey

	sink       Sink
	feed       feed
	words      phrase
	unit       bool // the sink got an effect but not yet the End of its unit
	log        Log
	master     *Master       // the master it follows; nil: none. A replica hides dead keys and leaves their removal to the master
	upstream   func(*Master) // called with a new master; nil: the engine cannot follow
	refused    func() string // nil, or returns the error for writes while they are refused
	began      int64         // unix microseconds: the first time it was given; 0: none yet
	port       int           // the TCP port for connections, as the owner says; 0: none
	peak       int64         // the most bytes that the data took at any INFO
	changes    int64         // effects on the data since the start, as INFO counts them
	activeOff  bool          // DEBUG SET-ACTIVE-EXPIRE 0
	lastCycle  int64         // unix ms of the last documented cycle
	stallUntil int64         // unix microseconds
	scratch    []byte
	keyBuf     []byte
	due        []uint32

	pubsub     hub
	globs      map[string]*glob.Pattern // of pubsub[patterns], compiled
	broadcasts []Message
	tracking   tracker
	scripts    library
	copies     []*Snapshot // those in progress
}

// New returns an empty engine.
func New(o Options) *Engine {
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	e := &Engine{
		options:  o,
		settings: defaultSettings(o),
		limits:   values.DefaultLimits,
		sessions: make(map[int64]*Session),
	}
	e.feed.heldLimit = 256 << 20
	e.rng.Seed(o.Seed, 0)
	for i := range e.dbs {
		e.dbs[i] = &db{index: i}
	}
	return e
}

// Do runs one command of s at now, in unix microseconds, and appends its reply to s.Out. It keeps nothing of args. It must not be called for
// a blocked session.
func (e *Engine) Do(now int64, s *Session, args [][]byte) Outcome {
	if len(args) == 0 {
		return Done
	}
	e.setNow(now)
	outcome := e.turn(s, args, nil)
	e.endTold(s, outcome)
	e.serveReady()
	e.endPause()
	return outcome
}

// Dirty returns the sessions whose Out has grown or that must be closed since the last call, except callers of Do. The slice is valid until
// the next call.
func (e *Engine) Dirty() []*Session {
	e.dirty, e.handed = e.handed[:0], e.dirty
	for _, s := range e.handed {
		s.dirty = false
	}
	return e.handed
}

// StalledUntil returns the time, in unix microseconds, until which no command may run and no reply be sent; 0: none.
func (e *Engine) StalledUntil() int64 {
	if e.stallUntil <= e.now {
		return 0
	}
	return e.stallUntil
}

func (e *Engine) setNow(now int64) {
	e.now, e.ms = now, now/1000
	if e.began == 0 {
		e.began = now
	}
}

// draw is the source of every random choice of the engine.
func (e *Engine) draw() uint64 { return e.rng.Uint64() }

// stats are the figures that INFO reports and CONFIG RESETSTAT clears.
type stats struct {
	commands, connections      int64
	hits, misses               int64
	expiredKeys, expiredFields int64
	evictedKeys                int64
	evictedScripts             int64
	rejected                   int64 // connections
	errorReplies               int64
	fullSyncs, partialSyncs    int64            // of replicas
	refusedSyncs               int64            // replicas that asked to continue where the stream is no longer known
	errors                     map[string]int64 // by code: the first word of an error
}
