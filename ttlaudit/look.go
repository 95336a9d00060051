package ttlaudit

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// seen is what a server says about a key.
type seen struct {
	key     string
	tally   *tally
	ttl     *redis.DurationCmd
	kind    *redis.StatusCmd
	size    *redis.IntCmd // nil: not asked for
	fields  *redis.StringSliceCmd
	endings *redis.IntSliceCmd
}

// firstSizes is how many sizes are asked for of each pattern, whatever the share is.
const firstSizes = 100

// look asks everything about the keys of a page, and counts them. A page that fails is not counted at all.
func (a *audit) look(ctx context.Context, n *node, s *walked, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	page := make([]seen, len(keys))
	pipe := n.rdb.Pipeline()
	for i, key := range keys {
		k := seen{key: key, tally: a.Forest.at(key), ttl: pipe.PTTL(ctx, key), kind: pipe.Type(ctx, key)}
		if a.sizes(key, k.tally) {
			k.size = pipe.MemoryUsage(ctx, key)
		}
		page[i] = k
	}
	if cmd := failed(ctx, pipe); cmd != nil {
		return explain(cmd)
	}
	if err := a.lookAtFields(ctx, n, page); err != nil {
		return err
	}
	for i := range page {
		a.count(s, &page[i])
	}
	return nil
}

// sizes reports whether to ask for key's size. That depends on the key, so it is the same after a resumption.
func (a *audit) sizes(key string, t *tally) bool {
	return a.opt.Sizes > 0 && (t.All.N < firstSizes || float64(hash(key)>>11)/(1<<53) < a.opt.Sizes)
}

// failed sends what is in pipe. It returns the first command that fails for a reason other than its key, or nil.
func failed(ctx context.Context, pipe redis.Pipeliner) redis.Cmder {
	cmds, _ := pipe.Exec(ctx) // each has its own error
	if i := slices.IndexFunc(cmds, serious); i >= 0 {
		return cmds[i]
	}
	return nil
}

// serious reports whether a command failed for a reason other than that its key is gone, has another type by now, or has moved to another
// master.
func serious(cmd redis.Cmder) bool {
	err := cmd.Err()
	return err != nil && !errors.Is(err, redis.Nil) && !moved(err) && !strings.Contains(err.Error(), "WRONGTYPE")
}

func moved(err error) bool {
	return err != nil && (strings.HasPrefix(err.Error(), "MOVED ") || strings.HasPrefix(err.Error(), "ASK "))
}

// count counts a key.
func (a *audit) count(s *walked, k *seen) {
	ttl := k.ttl.Val()
	switch {
	case moved(k.ttl.Err()):
		a.Moved++
		return
	case ttl == -2:
		a.Vanished++
		return
	}
	t := k.tally.latest()
	a.Keys++
	s.Keys++
	t.Keys++
	if kind := k.kind.Val(); kind != "none" && kind != "" { // it may have expired in between
		a.Types[kind]++
	}
	endless := ttl == -1
	if endless {
		a.NoTTL++
		t.NoTTL++
		if t.Example == "" || k.key < t.Example {
			t.Example = strings.Clone(k.key)
		}
	} else {
		if ttl > a.opt.TooLong {
			a.TooLong++
			t.TooLong++
		}
		at, _ := slices.BinarySearch(bounds[:], ttl)
		a.TTLs[at].Keys++
	}
	if k.size != nil && k.size.Err() == nil {
		size := k.size.Val()
		t.All.see(float64(size))
		if endless {
			t.Endless.see(float64(size))
			a.enlarge(k.key, k.kind.Val(), size)
		}
	}
	a.countFields(k, endless)
}

// enlarge adds a key to the largest, if it is one.
func (a *audit) enlarge(key, kind string, size int64) {
	at := sort.Search(len(a.Largest), func(i int) bool {
		l := a.Largest[i]
		return l.Bytes < size || l.Bytes == size && l.Key >= key
	})
	if at >= a.opt.Largest {
		return
	}
	if len(a.Largest) < a.opt.Largest {
		added(&a.Largest)
	}
	copy(a.Largest[at+1:], a.Largest[at:])
	l := &a.Largest[at]
	l.Key, l.Type, l.Bytes = strings.Clone(key), kind, size
}

// bounds of the groups of remaining TTLs.
var bounds = [...]time.Duration{
	time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// someFields is how many fields of a hash the audit asks about.
const someFields = 16

// lookAtFields asks when some fields expire, in the hashes whose size was asked for. It does not ask a server again that has no field TTLs, or
// does not allow the command.
func (a *audit) lookAtFields(ctx context.Context, n *node, page []seen) error {
	if a.Hashes.Unknown != "" {
		return nil
	}
	pipe := n.rdb.Pipeline()
	for i := range page {
		if k := &page[i]; k.size != nil && k.kind.Val() == "hash" {
			k.fields = pipe.HRandField(ctx, k.key, someFields)
		}
	}
	if cmd := failed(ctx, pipe); cmd != nil {
		return a.unable(cmd)
	}
	for i := range page {
		if k := &page[i]; k.fields != nil && len(k.fields.Val()) > 0 {
			k.endings = pipe.HPTTL(ctx, k.key, k.fields.Val()...)
		}
	}
	if cmd := failed(ctx, pipe); cmd != nil {
		return a.unable(cmd)
	}
	return nil
}

// unable notes why fields cannot be asked about, if cmd shows that; for any other failure it returns the error.
func (a *audit) unable(cmd redis.Cmder) error {
	why := cmd.Err().Error()
	if strings.HasPrefix(why, "NOPERM") || strings.HasPrefix(why, "ERR unknown command") {
		a.Hashes.Unknown = why
		return nil
	}
	return explain(cmd)
}

func (a *audit) countFields(k *seen, endless bool) {
	if k.endings == nil || a.Hashes.Unknown != "" {
		return
	}
	with, without := int64(0), int64(0)
	for _, left := range k.endings.Val() {
		switch {
		case left == -1:
			without++
		case left >= 0:
			with++
		}
	}
	if with+without == 0 {
		return
	}
	h := &a.Hashes
	h.Looked++
	h.Fields += with + without
	h.WithTTL += with
	if endless && without == 0 {
		h.EndByFields++
	}
}
