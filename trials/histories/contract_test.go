package histories

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mayflycache/mayfly"
)

// The database has versions of each key, which only grow. A cache may serve an old one, but this:
//
//   - no read returns a version that was over when the last write began that had returned nil before the read began;
//   - nor, of cacheaside, one that was over when a write of the same process began that failed: what it could not delete it loads each
//     time (a Purge that failed is to be called again);
//   - no read returns a version that the database did not have yet.
//
// A Set that returned an error may be executed later: its own version may be read after it, whatever was written since.

// op is one call.
type op struct {
	process    int
	kind       kind
	begin, end int64 // in the history's order
	failed     bool  // it returned an error

	// version is what a read got, and what the database had when a write began. Of a set it is what was set. Of a read that got nothing
	// it is what the database had when it ended: one of the versions until then is an absence.
	version int64
	absent  bool
}

// gap is how many versions there are from one that is an absence to the next, where a database has such versions.
const gap = 3

type kind uint8

const (
	read kind = iota
	remove
	set
)

func (o op) String() string {
	what := [...]string{"read", "removed, the database at", "set"}[o.kind]
	if o.failed {
		what = "failed: " + what
	}
	if o.absent {
		what += " nothing, the database at"
	}
	return fmt.Sprintf("%d-%d process %d %s %d", o.begin, o.end, o.process, what, o.version)
}

// history is what was done to one key.
type history struct {
	mu  sync.Mutex
	ops []op
}

// order numbers the beginnings and ends of calls.
var order atomic.Int64

// do records a call, which returns the version that it is about.
func (h *history) do(process int, k kind, call func() (version int64, err error)) error {
	o := op{process: process, kind: k, begin: order.Add(1)}
	version, err := call()
	o.absent = k == read && errors.Is(err, mayfly.ErrNotFound)
	o.version, o.failed, o.end = version, err != nil && !o.absent, order.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, o)
	return err
}

// reach says which reads a write is about.
type reach uint8

const (
	everywhere      reach = iota // if it returned nil, all
	andInItsProcess              // and also if it failed, those of its own process
	inItsProcess                 // those of its own process alone: others have local copies
)

// floor is what writes that ended by some time leave to be read.
type floor struct {
	end     int64
	version int64
}

// broken returns the reads that break the contract, and the number of those that came after a write. how says which
// reads a write is about.
func (h *history) broken(newest int64, how reach) (wrong []string, held int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	writes := slices.DeleteFunc(slices.Clone(h.ops), func(o op) bool { return o.kind == read })
	slices.SortFunc(writes, func(a, b op) int { return cmp.Compare(a.end, b.end) })
	all, owns := []floor{{}}, map[int][]floor{}
	ghosts := map[int64]int64{} // by the version of a set that failed: when it began
	raise := func(floors []floor, w op) []floor {
		least := int64(0)
		if n := len(floors); n > 0 {
			least = floors[n-1].version
		}
		return append(floors, floor{w.end, max(least, w.version)})
	}
	for _, w := range writes {
		switch {
		case !w.failed && how != inItsProcess:
			all = raise(all, w)
		case w.failed && w.kind == set:
			ghosts[w.version] = w.begin
		case !w.failed || how != everywhere:
			owns[w.process] = raise(owns[w.process], w)
		}
	}
	for _, r := range h.ops {
		if r.kind != read || r.failed {
			continue
		}
		least := max(at(all, r.begin), at(owns[r.process], r.begin))
		if least > 0 {
			held++
		}
		began, ghost := ghosts[r.version]
		switch {
		case ghost && began < r.end:
		case r.absent && r.version/gap*gap >= least:
		case r.version < least || r.absent:
			wrong = append(wrong, fmt.Sprintf("%v, and %d was deleted or set before\n%s", r, least, h.around(r)))
		case r.version > newest:
			wrong = append(wrong, fmt.Sprintf("%v, and the database has %d", r, newest))
		}
	}
	return wrong, held
}

// at returns the floor at a time.
func at(floors []floor, when int64) int64 {
	n, _ := slices.BinarySearchFunc(floors, when, func(f floor, when int64) int { return cmp.Compare(f.end, when) })
	if n == 0 {
		return 0
	}
	return floors[n-1].version
}

// around returns what was done shortly before a read.
func (h *history) around(r op) string {
	before := slices.DeleteFunc(slices.Clone(h.ops), func(o op) bool { return o.begin > r.end || o.kind == read && o.version > r.version+1 })
	slices.SortFunc(before, func(a, b op) int { return cmp.Compare(a.begin, b.begin) })
	var lines []string
	for _, o := range before[max(len(before)-25, 0):] {
		lines = append(lines, "\t"+o.String())
	}
	return strings.Join(lines, "\n")
}
