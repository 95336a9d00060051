package cacheaside_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

var (
	modelSeed  = flag.Uint64("model.seed", 0, "the one seed to play")
	modelGames = flag.Int("model.games", effort.Times(2, 6), "how many seeds to play")
)

const (
	modelKeys      = 5
	modelProcesses = 3
	modelSteps     = 2500
	modelTTL       = 20 * time.Second
)

// model is the specification: a database of versions, the versions for which keys were deleted, and which of them a cache may show. Random
// callers, writers and faults play against it, in a bubble.
//
//   - no version that is not yet committed, and none that was replaced longer ago than TTL, window and a load
//   - once a Delete for a version returned nil, nothing older is stored, nor returned by this process
//   - one load at a time for a key, over all processes, while nothing breaks and nobody deletes
//   - every key in Redis has an end
//   - errors are the loader's
//   - when all is quiet, what is stored is what the database has
type model struct {
	t   *testing.T
	rng *rand.Rand // of the driver
	srv *redistest.Server
	rdb *redis.Client
	o   cacheaside.Options

	caches []*cacheaside.Cache[int, int]
	full   func(key int) string
	plain  bool
	once   bool // one load at a time: not while a tombstone holds, nor with plain values, which have no place for a lease

	mu        sync.Mutex // guards the rest
	dice      *rand.Rand // of the loaders
	keys      [modelKeys]row
	faulted   time.Time // when something broke last
	broken    bool      // it still is
	open      int       // breakers: they close when somebody asks
	loads     int
	refused   int
	complains int
}

// row is one key of the database, and what is known about it.
type row struct {
	writing   chan struct{} // full while somebody writes: two writers that commit in one order might delete in the other
	versions  []time.Time
	confirmed int                 // the version for which a Delete returned nil
	own       [modelProcesses]int // in each process
	running   int                 // loads
	since     time.Time           // when the first of those that run began
	disturbed bool                // somebody deleted since
	deleting  int                 // callers that are about to delete
	deleted   time.Time           // when the last one did so
	unsure    bool                // a Set failed, and a hung server may still execute it, until it is repeated as a Delete
}

func (m *model) wrong(format string, args ...any) {
	m.complains++
	if m.complains <= 5 {
		m.t.Errorf("at %v: "+format, append([]any{time.Since(modelEpoch).Round(time.Millisecond)}, args...)...)
	}
}

// modelEpoch is when every bubble begins.
var modelEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var errModel = errors.New("the database is down")

func TestModel(t *testing.T) {
	begun, steps := time.Now(), 0
	for game := range *modelGames {
		seed := rand.Uint64()
		if *modelSeed != 0 {
			seed = *modelSeed
		}
		t.Run(fmt.Sprint("game ", game), func(t *testing.T) {
			t.Logf("seed %d: go test ./cacheaside -run TestModel -model.games 1 -model.seed %d", seed, seed)
			synctest.Test(t, func(t *testing.T) { playModel(t, seed) })
		})
		if steps += modelSteps; t.Failed() || *modelSeed != 0 {
			break
		}
	}
	t.Logf("%d steps, %.0f a second", steps, float64(steps)/time.Since(begun).Seconds())
}

func playModel(t *testing.T, seed uint64) {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), dice: rand.New(rand.NewPCG(seed, 2)), srv: redistest.Start(t, redistest.Options{Seed: seed | 1})}
	for key := range m.keys {
		m.keys[key].writing = make(chan struct{}, 1)
	}
	m.rdb = m.srv.Client()
	m.plain = m.rng.IntN(4) == 0
	m.o = cacheaside.Options{LoadTimeout: time.Minute}
	if !m.plain {
		m.o.MissTTL = []time.Duration{0, 5 * time.Second}[m.rng.IntN(2)]
		m.o.StaleWhile = []time.Duration{0, 10 * time.Second}[m.rng.IntN(2)]
		m.o.StaleIfError = []time.Duration{0, 10 * time.Second}[m.rng.IntN(2)]
		m.o.Hold = []time.Duration{0, 0, 2 * time.Second}[m.rng.IntN(3)]
	}
	m.o.Early = []earlyrefresh.Policy{nil, earlyrefresh.Never, earlyrefresh.Window(0.3)}[m.rng.IntN(3)]
	m.once = m.o.Hold == 0 && !(m.plain && m.o.Early != earlyrefresh.Never)
	batch := m.rng.IntN(2) == 0
	for range modelProcesses {
		o := m.srv.Options()
		o.ConnMaxIdleTime = time.Second // with TCP it would notice cut connections
		rdb := redis.NewClient(o)
		t.Cleanup(func() { rdb.Close() })
		ns := mayfly.Namespace[int, int]{Name: "model", Redis: rdb, Prefix: "m:", TTL: modelTTL, Plain: m.plain, Observer: mayfly.ObserverFunc(m.observe)}
		m.full = func(key int) string { full, _ := ns.FullKey(key); return full }
		if batch {
			m.caches = append(m.caches, must[int, int](t)(cacheaside.NewBatch(ns, m.loadMany, m.o)))
		} else {
			m.caches = append(m.caches, must[int, int](t)(cacheaside.New(ns, m.load, m.o)))
		}
	}
	var all sync.WaitGroup
	for range modelSteps {
		m.step(&all)
	}
	m.mend()
	all.Wait()
	time.Sleep(5 * time.Second) // failed deletes are repeated
	m.quiet()
	for _, c := range m.caches {
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if m.loads < 50 || m.refused == 0 && !m.plain {
		t.Logf("a dull game: %d loads, %d fills refused", m.loads, m.refused)
	}
}

func (m *model) observe(_ context.Context, e mayfly.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.Kind == mayfly.KindFill && e.Outcome == mayfly.OutcomeRefused:
		m.refused++
	case e.Kind == mayfly.KindBreaker && e.Outcome == mayfly.OutcomeFailed:
		m.open++
	case e.Kind == mayfly.KindBreaker:
		m.open--
		m.faulted = time.Now()
	}
}

// step does one thing, mostly in the background.
func (m *model) step(all *sync.WaitGroup) {
	process, key := m.rng.IntN(modelProcesses), m.rng.IntN(modelKeys)
	switch what := m.rng.IntN(100); {
	case what < 50:
		patience := time.Minute
		if m.rng.IntN(5) == 0 {
			patience = time.Duration(m.rng.IntN(200)) * time.Millisecond
		}
		all.Go(func() { m.get(process, []int{key}, patience) })
	case what < 58:
		keys := m.rng.Perm(modelKeys)[:1+m.rng.IntN(modelKeys)]
		all.Go(func() { m.get(process, keys, time.Minute) })
	case what < 66:
		all.Go(func() { m.write(process, key, false) })
	case what < 68:
		all.Go(func() { m.write(process, key, true) })
	case what < 70:
		if !m.plain { // there another program's DEL does not end a load: the documented price
			m.deletes(key, func() { m.rdb.Del(context.Background(), m.full(key)) })
		}
	case what < 73:
		m.fault()
	case what < 80:
		m.mend()
	case what < 82:
		m.stored()
	case what < 97:
		time.Sleep(time.Duration(m.rng.IntN(300)) * time.Millisecond)
	default:
		time.Sleep(time.Duration(m.rng.IntN(6000)) * time.Millisecond)
	}
}

// fault breaks something.
func (m *model) fault() {
	command := []string{"get", "pttl", "set", "evalsha", "del"}[m.rng.IntN(5)]
	m.mu.Lock()
	m.faulted = time.Now()
	m.mu.Unlock()
	switch m.rng.IntN(7) {
	case 0:
		m.setBroken(true)
		m.srv.Hang()
	case 1:
		m.setBroken(true)
		m.srv.Refuse(true)
		m.srv.KillConnections()
	case 2:
		m.srv.KillConnections()
	case 3:
		m.rdb.FlushAll(context.Background())
		m.rdb.ScriptFlush(context.Background())
	case 4:
		m.setBroken(true)
		m.srv.FailNext(command, []string{"OOM no memory", "READONLY replica", "LOADING it loads", "NOSCRIPT none", "ERR it"}[m.rng.IntN(5)])
	default:
		m.setBroken(true)
		m.srv.DropReply(command)
	}
}

func (m *model) setBroken(broken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken, m.faulted = broken, time.Now()
}

// mend ends what fault began, and uses up single failures that nobody has met yet.
func (m *model) mend() {
	m.mu.Lock()
	broken := m.broken
	m.mu.Unlock()
	if !broken {
		return
	}
	m.srv.Thaw()
	m.srv.Refuse(false)
	for range 20 {
		pipe := m.rdb.Pipeline()
		pipe.Get(context.Background(), "nothing")
		pipe.PTTL(context.Background(), "nothing")
		pipe.Set(context.Background(), "nothing", 1, time.Second)
		pipe.Do(context.Background(), "evalsha", "0000000000000000000000000000000000000000", 0)
		pipe.Del(context.Background(), "nothing")
		pipe.Exec(context.Background())
	}
	m.setBroken(false)
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { time.Sleep(d) }
