package ttlaudit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// node is one server whose keys are walked.
type node struct {
	addr string
	rdb  *redis.Client

	unreached error  // why it could not be asked
	keys      int64  // at the beginning; -1: not allowed to know
	life      string // the run ID: it changes with a restart, after which cursors are meaningless. Empty: not allowed to know
}

// nodes returns the servers that hold rdb's keys: the only one, the masters of a cluster, or the shards of a ring.
func nodes(ctx context.Context, rdb redis.UniversalClient) (all []*node, err error) {
	if err := check.Client("the client", rdb); err != nil {
		return nil, err
	}
	var mu sync.Mutex // guards all
	add := func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, &node{addr: c.Options().Addr, rdb: c})
		return nil
	}
	switch rdb := rdb.(type) {
	case *redis.Client:
		return []*node{{addr: rdb.Options().Addr, rdb: rdb}}, nil
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, add)
	case *redis.Ring:
		err = rdb.ForEachShard(ctx, add)
	default:
		err = fmt.Errorf("the client must be a *redis.Client, a *redis.ClusterClient or a *redis.Ring, got %T", rdb)
	}
	slices.SortFunc(all, func(a, b *node) int { return strings.Compare(a.addr, b.addr) })
	return all, err
}

// slotMap says which master has which slots; empty if rdb is not a cluster, or does not tell.
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
	masters := map[[2]int]string{} // by the first and the last of their slots
	for _, r := range ranges {
		masters[[2]int{r.Start, r.End}] = ""
		if len(r.Nodes) > 0 {
			masters[[2]int{r.Start, r.End}] = r.Nodes[0].ID
		}
	}
	return fmt.Sprint(masters) // in the order of the slots
}

// greet asks how many keys a server has, and which server it is.
func (n *node) greet(ctx context.Context) {
	n.keys, n.unreached = n.rdb.DBSize(ctx).Result()
	if n.unreached != nil && strings.HasPrefix(n.unreached.Error(), "NOPERM") {
		n.keys, n.unreached = -1, nil
	}
	if n.unreached == nil {
		n.life = n.runID(ctx)
	}
}

func (n *node) runID(ctx context.Context) string {
	for line := range strings.Lines(n.rdb.Info(ctx, "server").Val()) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id
		}
	}
	return ""
}

// walker walks the keys of a server, page by page, at a bounded rate.
type walker struct {
	match   string
	count   int64   // of SCAN
	rate    float64 // keys/s; 0: no limit
	next    time.Time
	skipped recent
}

// page is a reply of SCAN.
type page struct {
	keys []string // keys that no earlier page had
	next uint64   // cursor of the next page, 0 after the last
}

// The default pace of walkers.
const (
	defaultRate = 10_000
	fullCount   = 1000
	pagesPerSec = 100
)

// newWalker returns a walker that looks at up to rate keys a second. Negative means no limit, and zero the default. At a bounded rate its
// pages are so small that none makes other clients wait for long.
func newWalker(match string, rate int) *walker {
	rate = cmp.Or(rate, defaultRate)
	if rate < 0 {
		return &walker{match: match, count: fullCount}
	}
	return &walker{match: match, rate: float64(rate), count: int64(min(max(rate/pagesPerSec, 10), fullCount))}
}

// pages yields the pages of a server from cursor on, up to the last one or an error. Without a limit it requests the next page before it
// yields one.
func (w *walker) pages(ctx context.Context, n *node, cursor uint64) iter.Seq2[page, error] {
	scan := func(cursor uint64) *redis.ScanCmd { return n.rdb.Scan(ctx, cursor, w.match, w.count) }
	return func(yield func(page, error) bool) {
		var ahead chan *redis.ScanCmd
		defer func() {
			if ahead != nil {
				<-ahead
			}
		}()
		for {
			if err := w.wait(ctx); err != nil {
				yield(page{}, err)
				return
			}
			var cmd *redis.ScanCmd
			if ahead == nil {
				cmd = scan(cursor)
			} else {
				cmd, ahead = <-ahead, nil
			}
			keys, next, err := cmd.Result()
			if err != nil {
				yield(page{}, explain(cmd))
				return
			}
			if w.rate > 0 { // a page costs the server what it looked at, even if little matched
				looked := float64(max(len(keys), int(w.count)))
				w.next = time.Now().Add(time.Duration(looked / w.rate * float64(time.Second)))
			} else if next != 0 {
				ahead = make(chan *redis.ScanCmd, 1)
				go func(to chan<- *redis.ScanCmd) { to <- scan(next) }(ahead)
			}
			if !yield(page{slices.DeleteFunc(keys, w.skipped.seen), next}, nil) || next == 0 {
				return
			}
			cursor = next
		}
	}
}

func (w *walker) wait(ctx context.Context) error {
	if pause := time.Until(w.next); pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// recent remembers about the latest 100,000 keys. SCAN returns a key twice only if the server's table shrinks between two pages, and then
// only keys of the few buckets at the cursor. Those were in the latest pages, so exact totals do not require remembering all keys.
type recent struct {
	Last []uint64 // the very latest, saved in a state
	sets [][8]uint64
}

const (
	sets  = 1 << 14
	saved = 1 << 12
)

// seen remembers key, and reports whether it was already remembered.
func (r *recent) seen(key string) bool {
	if r.sets == nil {
		r.sets = make([][8]uint64, sets)
		for _, h := range r.Last {
			r.remember(h)
		}
	}
	return !r.remember(hash(key))
}

// keep adds the keys of a counted page to what a state remembers. A page that was not counted will be walked again.
func (r *recent) keep(keys []string) {
	for _, key := range keys {
		r.Last = append(r.Last, hash(key))
	}
	r.Last = r.Last[max(len(r.Last)-saved, 0):]
}

// remember puts h in its set, in place of the oldest entry. It reports false if h was already there.
func (r *recent) remember(h uint64) bool {
	set := &r.sets[h%sets]
	if slices.Contains(set[:], h) {
		return false
	}
	copy(set[1:], set[:])
	set[0] = h
	return true
}

// hash is FNV-1a with its bits mixed. It is the same in every process.
func hash(key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// explain says how a command failed and, if known, what to do about it.
func explain(cmd redis.Cmder) error {
	err, name := cmd.Err(), cmd.Name()
	if name == "memory" {
		name = "memory usage"
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case strings.HasPrefix(err.Error(), "NOPERM"):
		return fmt.Errorf("%s is not allowed to this user: ACL SETUSER <user> +%s (%w)", strings.ToUpper(name), strings.ReplaceAll(name, " ", "|"), err)
	}
	return fmt.Errorf("%s: %w", strings.ToUpper(name), err)
}
