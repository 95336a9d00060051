package ttlaudit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is one server whose keys are walked.
type node struct {
	addr string
	rdb  *redis.Client
}

// nodes are the servers that hold rdb's keys: the one, or the masters of a cluster, or the shards of a ring.
func nodes(ctx context.Context, rdb redis.UniversalClient) (all []node, err error) {
	var mu sync.Mutex // guards all
	add := func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, node{c.Options().Addr, c})
		return nil
	}
	switch rdb := rdb.(type) {
	case *redis.Client:
		return []node{{rdb.Options().Addr, rdb}}, nil
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, add)
	case *redis.Ring:
		err = rdb.ForEachShard(ctx, add)
	default:
		err = fmt.Errorf("the client must be a *redis.Client, a *redis.ClusterClient or a *redis.Ring, got %T", rdb)
	}
	slices.SortFunc(all, func(a, b node) int { return strings.Compare(a.addr, b.addr) })
	return all, err
}

// slotMap says which master has which slots; empty if rdb is no cluster, or does not tell.
func slotMap(ctx context.Context, rdb redis.UniversalClient) string {
	c, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return ""
	}
	//lint:ignore SA1019 it is what the client itself asks for, so it is allowed
	ranges, err := c.ClusterSlots(ctx).Result()
	if err != nil {
		return ""
	}
	lines := make([]string, len(ranges))
	for i, r := range ranges {
		lines[i] = fmt.Sprint(r.Start, r.End)
		if len(r.Nodes) > 0 {
			lines[i] += r.Nodes[0].ID
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// greet asks who a server is and how many keys it has, -1 if it may not tell. Its error is that the server cannot be asked.
func (n node) greet(ctx context.Context) (life string, keys int64, err error) {
	keys, err = n.rdb.DBSize(ctx).Result()
	switch {
	case err == nil:
	case strings.HasPrefix(err.Error(), "NOPERM"):
		keys = -1
	default:
		return "", 0, err
	}
	return n.life(ctx), keys, nil
}

// life tells one life of a server from another: a cursor means nothing to the next. Empty if the server does not tell.
func (n node) life(ctx context.Context) string {
	for line := range strings.Lines(n.rdb.Info(ctx, "server").Val()) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id
		}
	}
	return ""
}

// walker goes through the keys of a server, page by page, at a pace.
type walker struct {
	match   string
	count   int64   // of SCAN
	rate    float64 // keys/s; 0: no bound
	next    time.Time
	skipped recent
	ahead   chan scanned // at full speed: the next page of the server, on its way
}

// scanned is a reply of SCAN.
type scanned struct {
	keys []string
	next uint64
	err  error
}

// pace of walkers where nothing is said.
const (
	defaultRate = 10_000
	fullCount   = 1000
	pagesPerSec = 100
)

// newWalker returns one that looks at up to rate keys a second; negative is no bound, and zero the default. At a bounded rate
// the pages are so small that none keeps others waiting for long.
func newWalker(match string, rate int) *walker {
	w := &walker{match: match, count: fullCount}
	if rate == 0 {
		rate = defaultRate
	}
	if rate > 0 {
		w.rate, w.count = float64(rate), int64(min(max(rate/pagesPerSec, 10), fullCount))
	}
	return w
}

// page returns the keys of the page at cursor that no page before had, and the cursor of the next, 0 after the last. Pages of a
// server are asked for in their order.
func (w *walker) page(ctx context.Context, n node, cursor uint64) (keys []string, next uint64, err error) {
	if err := w.wait(ctx); err != nil {
		return nil, 0, err
	}
	var got scanned
	if w.ahead != nil {
		got = <-w.ahead
		w.ahead = nil
	} else {
		got = w.scan(ctx, n, cursor)
	}
	if got.err != nil {
		return nil, 0, explain("SCAN", got.err)
	}
	if w.rate > 0 { // a page costs the server what it looked at, also where little matched
		looked := float64(max(len(got.keys), int(w.count)))
		w.next = time.Now().Add(time.Duration(looked / w.rate * float64(time.Second)))
	} else if got.next != 0 {
		w.ahead = make(chan scanned, 1)
		go func(to chan<- scanned) { to <- w.scan(ctx, n, got.next) }(w.ahead)
	}
	return slices.DeleteFunc(got.keys, w.skipped.seen), got.next, nil
}

func (w *walker) scan(ctx context.Context, n node, cursor uint64) (s scanned) {
	s.keys, s.next, s.err = n.rdb.Scan(ctx, cursor, w.match, w.count).Result()
	return s
}

// leave ends the walk of a server before its end.
func (w *walker) leave() {
	if w.ahead != nil {
		<-w.ahead
		w.ahead = nil
	}
}

func (w *walker) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	pause := time.Until(w.next)
	if w.rate == 0 || pause <= 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recent remembers the latest keys, some 100,000. SCAN returns a key twice only if the server's table shrinks between two pages,
// and then those of the few buckets that it was at, which become one. They came in the latest pages: to remember all keys
// ever seen is not needed for exact totals.
type recent struct {
	Last []uint64 // the very latest, for a state
	At   int      // where the next goes
	sets [][8]uint64
}

const (
	sets  = 1 << 14
	saved = 1 << 12
)

// seen reports whether key is remembered, and remembers it.
func (r *recent) seen(key string) bool {
	if r.sets == nil {
		r.sets = make([][8]uint64, sets)
		for _, h := range r.Last {
			r.remember(h)
		}
	}
	return !r.remember(hash(key))
}

// keep has the keys of a page remembered by a state, too. It is called when they are counted: a page that was not is walked
// again.
func (r *recent) keep(keys []string) {
	for _, key := range keys {
		if len(r.Last) < saved {
			r.Last = append(r.Last, hash(key))
		} else {
			r.Last[r.At] = hash(key)
			r.At = (r.At + 1) % saved
		}
	}
}

// remember puts h in its set, in the place of the oldest there. It reports false if it is there.
func (r *recent) remember(h uint64) bool {
	set := &r.sets[h%sets]
	for _, other := range set {
		if other == h {
			return false
		}
	}
	copy(set[1:], set[:])
	set[0] = h
	return true
}

// hash is FNV-1a with its bits mixed: the same in every process.
func hash(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// explain says what is to be done about an error of Redis's, where that is known.
func explain(command string, err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case strings.HasPrefix(text, "NOPERM"):
		return fmt.Errorf("%s is not allowed to this user: ACL SETUSER <user> +%s (%w)", command, strings.ReplaceAll(strings.ToLower(command), " ", "|"), err)
	}
	return fmt.Errorf("%s: %w", command, err)
}
