package ttlaudit

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// seen is what a server says of a key.
type seen struct {
	key     string
	tally   *tally
	ttl     *redis.DurationCmd
	kind    *redis.StatusCmd
	size    *redis.IntCmd // nil: not asked
	fields  *redis.StringSliceCmd
	endings *redis.IntSliceCmd
}

// firstSizes are asked for of each pattern, whatever the share is.
const firstSizes = 100

// look asks what there is to know of the keys of a page, and counts it. A page that fails is not counted at all.
func (a *audit) look(ctx context.Context, n node, s *walked, keys []string) error {
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
	pipe.Exec(ctx) // each has its own error
	for i := range page {
		k := &page[i]
		if err := serious("PTTL", k.ttl); err != nil {
			return err
		}
		if err := serious("TYPE", k.kind); err != nil {
			return err
		}
		if k.size != nil {
			if err := serious("MEMORY USAGE", k.size); err != nil {
				return err
			}
		}
	}
	if err := a.lookAtFields(ctx, n, page); err != nil {
		return err
	}
	for i := range page {
		a.count(s, &page[i])
	}
	return nil
}

// sizes reports whether key's size is to be asked for. It depends on the key, so that it is the same after a resumption.
func (a *audit) sizes(key string, t *tally) bool {
	return a.opt.Sizes > 0 && (t.All.N < firstSizes || float64(hash(key)>>11)/(1<<53) < a.opt.Sizes)
}

// serious returns the error of a command if it is not about its key alone: that this is gone, or has moved to another master.
func serious(command string, cmd redis.Cmder) error {
	err := cmd.Err()
	if err == nil || errors.Is(err, redis.Nil) || moved(err) {
		return nil
	}
	return explain(command, err)
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
	t := a.Forest.heir(k.tally)
	a.Keys++
	s.Keys++
	t.Keys++
	if kind := k.kind.Val(); kind != "none" && kind != "" { // it may have ended since
		a.Types[kind]++
	}
	endless := ttl == -1
	switch {
	case endless:
		a.NoTTL++
		t.NoTTL++
		if t.Example == "" || k.key < t.Example {
			t.Example = strings.Clone(k.key)
		}
	default:
		if ttl > a.opt.TooLong {
			a.TooLong++
			t.TooLong++
		}
		a.TTLs[bucketOf(ttl)]++
	}
	if k.size != nil && k.size.Err() == nil {
		size := k.size.Val()
		t.All.see(float64(size))
		if endless {
			t.Endless.see(float64(size))
			a.enlarge(LargeKey{Key: k.key, Type: k.kind.Val(), Bytes: size})
		}
	}
	a.countFields(k, endless)
}

// enlarge puts k among the largest keys, if it is one.
func (a *audit) enlarge(k LargeKey) {
	at := len(a.Largest)
	for at > 0 && (a.Largest[at-1].Bytes < k.Bytes || a.Largest[at-1].Bytes == k.Bytes && a.Largest[at-1].Key > k.Key) {
		at--
	}
	if at == a.opt.Largest {
		return
	}
	k.Key = strings.Clone(k.Key)
	a.Largest = append(a.Largest, LargeKey{})
	copy(a.Largest[at+1:], a.Largest[at:])
	a.Largest[at] = k
	a.Largest = a.Largest[:min(len(a.Largest), a.opt.Largest)]
}

// bounds of the times left that are told apart; what is longer is one more.
var bounds = [...]time.Duration{
	time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 365 * 24 * time.Hour,
}

func bucketOf(ttl time.Duration) int {
	for i, b := range bounds {
		if ttl <= b {
			return i
		}
	}
	return len(bounds)
}

// someFields are how many fields of a hash are asked for their ends.
const someFields = 16

// lookAtFields asks, of the hashes whose size was asked for, when some of the fields end. A server that has no field TTL, or does not
// allow to ask, is not asked again.
func (a *audit) lookAtFields(ctx context.Context, n node, page []seen) error {
	if a.Hashes.Unknown != "" {
		return nil
	}
	pipe := n.rdb.Pipeline()
	for i := range page {
		if k := &page[i]; k.size != nil && k.kind.Val() == "hash" {
			k.fields = pipe.HRandField(ctx, k.key, someFields)
		}
	}
	if pipe.Len() == 0 {
		return nil
	}
	pipe.Exec(ctx)
	pipe = n.rdb.Pipeline()
	for i := range page {
		k := &page[i]
		if k.fields == nil {
			continue
		}
		if a.unable(k.fields.Err()) {
			return nil
		}
		if err := serious("HRANDFIELD", k.fields); err != nil && !wrongType(err) {
			return err
		}
		if fields := k.fields.Val(); len(fields) > 0 {
			k.endings = pipe.HPTTL(ctx, k.key, fields...)
		}
	}
	if pipe.Len() == 0 {
		return nil
	}
	pipe.Exec(ctx)
	for i := range page {
		k := &page[i]
		if k.endings == nil {
			continue
		}
		if a.unable(k.endings.Err()) {
			return nil
		}
		if err := serious("HPTTL", k.endings); err != nil && !wrongType(err) {
			return err
		}
	}
	return nil
}

// unable notes that fields cannot be asked for, and why.
func (a *audit) unable(err error) bool {
	if err == nil || !strings.HasPrefix(err.Error(), "NOPERM") && !strings.HasPrefix(err.Error(), "ERR unknown command") {
		return false
	}
	a.Hashes.Unknown = err.Error()
	return true
}

// wrongType says that the key is another by now.
func wrongType(err error) bool { return strings.Contains(err.Error(), "WRONGTYPE") }

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
