package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/values"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// holdings describes all that an engine holds, dead keys included, a line for each key.
func holdings(e *Engine) string {
	var lines []string
	for _, d := range e.dbs {
		d.each(func(o *object) {
			var parts []string
			switch v := o.coll.(type) {
			case nil:
				parts = []string{fmt.Sprintf("%q", o.str)}
			case *values.ListValue:
				for b := range v.Each {
					parts = append(parts, fmt.Sprintf("%q", b))
				}
			case *values.SetValue:
				for m := range v.Each {
					parts = append(parts, fmt.Sprintf("%q", m))
				}
				slices.Sort(parts)
			case *values.ZSetValue:
				v.Each(0, v.Len(), true, func(m string, score float64) bool {
					parts = append(parts, fmt.Sprintf("%q:%v", m, score))
					return true
				})
			case *values.HashValue:
				v.Each(func(f, b []byte, deadline int64) bool {
					parts = append(parts, fmt.Sprintf("%q:%q:%d", f, b, deadline))
					return true
				})
				slices.Sort(parts)
			}
			lines = append(lines, fmt.Sprintf("%d %q %v %d %s", d.index, o.key, o.kind(), d.deadline(o), strings.Join(parts, " ")))
			if next := d.fields.Deadline(o.id); o.kind() == values.Hash && next != o.coll.(*values.HashValue).NextDeadline() {
				lines = append(lines, fmt.Sprintf("%q: the index has field deadline %d", o.key, next))
			}
		})
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// obeyAll makes e carry out a stream of commands, at now.
func obeyAll(t *testing.T, e *Engine, now int64, stream []byte) {
	t.Helper()
	s := e.NewSession(SessionOptions{Trusted: true, Obeys: true})
	var p resp.Parser
	in := bytes.NewReader(stream)
	for {
		args, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		if args == nil {
			if n, _ := p.Fill(in); n == 0 {
				break
			}
			continue
		}
		if err := e.Obey(now, s, args); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
	}
	e.Drop(s)
}

func loaded(t *testing.T, now int64, file []byte) *Engine {
	t.Helper()
	e := New(Options{Seed: 1})
	if _, err := e.Load(now, rdb.NewFile(bytes.NewReader(file)), true); err != nil {
		t.Fatal(err)
	}
	return e
}

// firstDifference returns the first line in which two holdings differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "nothing", "nothing"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("\n got %.300s\nwant %.300s", a, b)
		}
	}
	return "none"
}

// taking is a snapshot in progress, and the effects since it began.
type taking struct {
	of     *Snapshot
	file   []byte
	was    string
	stream *bytes.Buffer
}

// A snapshot holds what there was when it began, whatever came between its pieces, and together with the later effects it makes the present
// state. Random commands of all families are played, time passes, and several snapshots are taken at once.
func TestSnapshotAndEffectsAreTheState(t *testing.T) {
	for seed := range uint64(effort.Times(2, 300)) {
		r := rand.New(rand.NewPCG(seed, 9))
		s := newStage(Options{Seed: seed + 1})
		stream := new(bytes.Buffer)
		sink := &Stream{Write: func(unit []byte) { stream.Write(unit) }}
		s.SetSink(sink)
		var open []*taking
		finish := func(k *taking) {
			for more := true; more; {
				k.file, more = k.of.Next(k.file, 1<<20)
			}
			var sum rdb.Sum
			sum.Add(k.file)
			e := loaded(t, s.now, rdb.AppendEnd(k.file, sum))
			if got := holdings(e); got != k.was {
				t.Fatalf("seed %d: the snapshot differs: %s", seed, firstDifference(got, k.was))
			}
			obeyAll(t, e, s.now, stream.Bytes()[k.stream.Len():])
			if got, want := holdings(e), holdings(s.Engine); got != want {
				t.Fatalf("seed %d: what was replayed differs: %s\nfrom %q", seed, firstDifference(got, want), stream.Bytes()[max(k.stream.Len(), stream.Len()-3000):])
			}
		}
		for i, a := range newScene(seed * 7).acts {
			if s.session("").queue == nil && i%40 == 10 {
				sink.Reselect()
				open = append(open, &taking{of: s.Snapshot(), was: holdings(s.Engine), stream: bytes.NewBuffer(bytes.Clone(stream.Bytes()))})
			}
			s.do("", a.args...)
			if waiting := s.session("").waiting != nil; waiting {
				s.sleep(60_000)
				s.release(s.session(""), "")
			}
			for _, k := range open {
				if r.IntN(3) == 0 {
					k.file, _ = k.of.Next(k.file, r.IntN(100))
				}
			}
			switch r.IntN(20) {
			case 0:
				s.now += int64(r.IntN(20)) * 1000
			case 1:
				s.now += int64(r.IntN(1e6)) * 1e6 // and dead keys are left lying
			case 2:
				s.sleep(r.IntN(1e8))
			}
			if len(open) > 2 && s.session("").queue == nil {
				finish(open[0])
				open = open[1:]
			}
		}
	}
}
