package engine

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

var (
	differentialCommands = flag.Int("commands", 200_000, "how many commands TestDifferential compares with a real Redis")
	differentialSeed     = flag.Uint64("seed", 1, "of TestDifferential's first scene; 0: a different one each time")
)

// A family is a way to draw commands.
type family struct {
	name  string
	draw  func(*dice) []string
	mixed bool // works on what other families make: all are drawn, at shared keys
}

var families []family

func init() { // scripts call commands of all families
	families = []family{
		{name: "strings", draw: drawStrings},
		{name: "bits", draw: drawBits},
		{name: "keys", draw: drawKeys},
		{name: "hashes", draw: drawHashes},
		{name: "lists", draw: drawLists},
		{name: "sets", draw: drawSets},
		{name: "sorted sets", draw: drawSortedSets},
		{name: "sorting", draw: drawSort},
		{name: "hyperloglogs", draw: drawHyperLogLogs},
		{name: "transactions", draw: drawTransactions, mixed: true},
		{name: "scripts", draw: drawScripts, mixed: true},
		{name: "payloads", draw: drawPayloads, mixed: true},
		{name: "server", draw: drawServer, mixed: true},
	}
}

// universe are all keys used by draws.
var universe = func() (all []string) {
	for _, of := range []struct {
		prefix string
		n      int
	}{{"s", 4}, {"b", 3}, {"k", 6}, {"h", 3}, {"l", 3}, {"z", 5}, {"p", 4}, {"w_", 12}, {"h_", 12}} {
		for i := range of.n {
			all = append(all, fmt.Sprint(of.prefix, i))
		}
	}
	return append(all, "lex", "nolex", "list", "set", "zset", "none", "dst", "k")
}()

// A scene is a thousand commands on empty servers, drawn from one seed: of one family, or of all. Half of the scenes have low limits.
type scene struct {
	seed  uint64
	low   bool
	first *family // nil: all families
	acts  []act
}

const sceneActs = 1000

// lanes is how many scenes are played at a time, each with its own Redis: most of the time is spent waiting.
const lanes = 2

// act is one drawn command.
type act struct {
	proto  int
	args   []string
	brief  bool // it sets a deadline of a millisecond
	family *family
}

// newScene draws a scene. The seed determines the family, so that successive seeds play all families.
func newScene(seed uint64) *scene {
	r := newDice(seed)
	s := &scene{seed: seed, low: r.IntN(2) == 0}
	if turn := int(seed % uint64(len(families)+4)); turn < len(families) {
		s.first = &families[turn]
	}
	r.mixed = s.first == nil || s.first.mixed
	proto := 2 + r.IntN(2)
	for len(s.acts) < sceneActs {
		if r.rest == 0 && r.IntN(40) == 0 {
			proto = 5 - proto
		}
		f := s.first
		if f == nil || f.mixed && r.IntN(2) == 0 {
			f = &families[r.IntN(len(families))]
		}
		args := r.draw(f)
		if !s.low && len(args) > 100 && strings.HasPrefix(args[0], "S") { // so that no set becomes a table
			continue
		}
		s.acts = append(s.acts, act{proto: proto, args: args, brief: r.brief, family: f})
		r.brief = false
	}
	return s
}

// draw returns a command of f, or the next one of an open transaction.
func (r *dice) draw(f *family) []string {
	if r.rest > 0 {
		if r.rest--; r.rest == 0 {
			return []string{"EXEC"}
		}
	}
	args := f.draw(r)
	if args[0] == "MULTI" && r.IntN(4) > 0 {
		r.rest = 2 + r.IntN(6)
	}
	return args
}

// TestDifferential plays scenes on the engine and on a real Redis 8, and compares every reply, every keyspace event and the final contents.
// differences lists what may differ. By default it plays the same scenes each time, so that a failure is caused by a change; make diff plays
// other scenes, and more of them.
func TestDifferential(t *testing.T) {
	effort.Alone(t)
	commands, seed := *differentialCommands, *differentialSeed
	if seed == 0 {
		seed = rand.Uint64N(1e9)
	}
	if effort.Race {
		commands = min(commands, 50_000)
	}
	t.Logf("seed %d", seed)
	c := newCoverage()
	start := time.Now()
	var next atomic.Uint64 // scene
	scenes := uint64(commands+sceneActs-1) / sceneActs
	t.Run("scenes", func(t *testing.T) {
		for range min(lanes, scenes) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				addr := realServer(t)
				for i := next.Add(1) - 1; i < scenes; i = next.Add(1) - 1 {
					s := newScene(seed + i)
					if m := s.play(t, addr, s.acts, c.count); m != nil {
						next.Store(scenes)
						t.Fatalf("scene %d of %d: rerun it with -seed=%d -commands=%d\n%s", i, scenes, s.seed, sceneActs, s.shrink(t, addr, m))
					}
				}
			})
		}
	})
	if c.total == 0 { // no real Redis
		return
	}
	t.Logf("%d commands in %v\n%s", c.total, time.Since(start).Round(time.Millisecond), c)
	if commands >= 200_000 && !t.Failed() {
		c.assert(t)
	}
}

// play plays acts on empty servers and returns the first mismatch.
func (s *scene) play(t *testing.T, addr string, acts []act, seen func(family *family, x *exchange)) *mismatch {
	b, err := newBeside(addr, s.low)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	var of []*family // of each exchange in the batch
	b.seen = func(x *exchange) {
		if seen != nil {
			seen(of[0], x)
		}
		of = of[1:]
	}
	r := rand.New(rand.NewPCG(s.seed, 1))
	waits := map[int]bool{} // by session: its open transaction sets a deadline of a millisecond
	for i, a := range acts {
		m := b.turn(a.proto)
		if m == nil {
			before := len(b.batch)
			b.send(a.args...)
			for _, x := range b.batch[before:] {
				if !x.aside {
					of = append(of, a.family)
				}
			}
			m = b.rest(a, waits)
		}
		if m == nil && r.IntN(300) == 0 {
			m = b.check(universe)
		}
		if m != nil {
			m.acts = i + 1
			return m
		}
	}
	m := b.flush()
	if m == nil {
		m = b.check(universe)
	}
	if m != nil {
		m.acts = len(acts)
	}
	return m
}

// batchSize is how many commands are sent to Redis at once.
const batchSize = 64

// rest ends the batch when it is long enough, or when the next act needs a deadline to have passed.
func (b *beside) rest(a act, waits map[int]bool) *mismatch {
	wait := a.brief
	if open := b.sessions[b.who].queue != nil; open {
		waits[b.who], wait = waits[b.who] || wait, false
	} else if waits[b.who] {
		waits[b.who], wait = false, true
	}
	if !wait && len(b.batch) < batchSize {
		return nil
	}
	m := b.flush()
	if wait {
		<-time.After(3 * time.Millisecond)
	}
	return m
}
