package promises

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// state returns what the world's keys hold, and when they end, one line a key.
func (w world) state() (lines []string) {
	w.t.Helper()
	for _, key := range w.keys() {
		lines = append(lines, w.describe(key))
	}
	slices.Sort(lines)
	return lines
}

// keys returns all keys that mention the world's prefix, locks and leases too.
func (w world) keys() (keys []string) {
	w.t.Helper()
	var mu sync.Mutex // guards keys
	scan := func(ctx context.Context, node *redis.Client) error {
		for it := node.Scan(ctx, 0, "*"+w.prefix+"*", 10_000).Iterator(); it.Next(ctx); {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return nil
	}
	switch rdb := w.direct.(type) {
	case *redis.ClusterClient:
		w.must(rdb.ForEachMaster(w.ctx, scan))
	case *redis.Client:
		w.must(scan(w.ctx, rdb))
	}
	return keys
}

// remove leaves nothing of the world behind.
func (w world) remove() {
	for _, key := range w.keys() {
		w.must(w.direct.Del(w.ctx, key).Err())
	}
}

func (w world) describe(key string) string {
	w.t.Helper()
	ctx, rdb := w.ctx, w.direct
	kind, err := rdb.Type(ctx, key).Result()
	w.must(err)
	var holds any
	switch kind {
	case "string":
		holds, err = rdb.Get(ctx, key).Result()
	case "list":
		holds, err = rdb.LRange(ctx, key, 0, -1).Result()
	case "zset":
		holds, err = rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
	case "hash":
		holds, err = w.fields(key)
	}
	if err != nil && err != redis.Nil { // it may have ended
		w.must(err)
	}
	end, err := rdb.Do(ctx, "pexpiretime", key).Int64()
	w.must(err)
	return fmt.Sprintf("%s %s %q, ends %d", key, kind, fmt.Sprint(holds), end)
}

// fields returns a hash's fields, each with its end.
func (w world) fields(key string) (fields []string, err error) {
	holds, err := w.direct.HGetAll(w.ctx, key).Result()
	for name, value := range holds {
		end := w.direct.Do(w.ctx, "hpexpiretime", key, "fields", 1, name).Val()
		fields = append(fields, fmt.Sprintf("%s=%s, ends %v", name, value, end))
	}
	slices.Sort(fields)
	return fields, err
}

// endless returns the keys that never end.
func (w world) endless() (keys []string) {
	w.t.Helper()
	for _, line := range w.state() {
		if strings.HasSuffix(line, "ends -1") {
			keys = append(keys, line)
		}
	}
	return keys
}

// withoutEnds is the state but for the times at which keys and fields end, for calls that may give more time.
func withoutEnds(lines []string) []string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		words := strings.Split(line, ", ends ")
		for n := range words[1:] {
			words[n+1] = strings.TrimLeft(words[n+1], "-0123456789[]")
		}
		lines[i] = strings.Join(words, "")
	}
	return lines
}

// holding returns the lines of the state that have text in them.
func (w world) holding(text string) (lines []string) {
	w.t.Helper()
	return slices.DeleteFunc(w.state(), func(line string) bool { return !strings.Contains(line, text) })
}

// patience is how long a test waits for what must come.
const patience = 10 * time.Second
