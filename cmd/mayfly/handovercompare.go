package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// compare compares the number of keys of each database, and the deadlines of a sample.
func (h *handover) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.pause/4, errors.New("the comparison took too long: give a longer --pause, or a smaller --sample"))
	defer cancel()
	from, err := h.ask(ctx, h.from, "source")
	if err != nil {
		return err
	}
	to, err := h.ask(ctx, h.to, "target")
	if err != nil {
		return err
	}
	for name, count := range from.keys {
		if to.keys[name] != count {
			return fmt.Errorf("in %s the source has %s, and the target has %s", name, count, to.keys[name])
		}
	}
	if from.total != to.total {
		return fmt.Errorf("the source has %d keys, and the target has %d", from.total, to.total)
	}
	compared := 0
	for name := range from.keys {
		number, err := strconv.Atoi(strings.TrimPrefix(name, "db"))
		if err != nil {
			continue
		}
		n, err := h.compareEnds(ctx, number)
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		compared += n
	}
	h.say("the target has all %d keys, and the deadlines of the %d compared keys are the same", from.total, compared)
	return nil
}

// compareEnds compares the deadlines of up to sample keys of a database, or slightly more: SCAN returns pages.
func (h *handover) compareEnds(ctx context.Context, db int) (n int, err error) {
	at := func(o *redis.Options) *redis.Client {
		o2 := *o
		o2.DB = db
		return redis.NewClient(&o2)
	}
	from, to := at(h.fromOptions), at(h.toOptions)
	defer from.Close()
	defer to.Close()
	for cursor := uint64(0); n < h.sample; {
		keys, next, err := from.Scan(ctx, cursor, "*", 250).Result()
		if err != nil {
			return n, fmt.Errorf("SCAN at the source: %w", err)
		}
		want, err := ends(ctx, from, keys)
		if err != nil {
			return n, fmt.Errorf("PEXPIRETIME at the source: %w", err)
		}
		got, err := ends(ctx, to, keys)
		if err != nil {
			return n, fmt.Errorf("PEXPIRETIME at the target: %w", err)
		}
		for i, key := range keys {
			if ended := want[i] > 0 && want[i] <= time.Now().UnixMilli() || want[i] == -2; got[i] != want[i] && !ended {
				return n, fmt.Errorf("key %q of database %d ends at %d at the source and at %d at the target (unix ms; -1: never, -2: the key does not exist)", key, db, want[i], got[i])
			}
		}
		n += len(keys)
		if cursor = next; cursor == 0 {
			break
		}
	}
	return n, nil
}

// ends returns the deadlines of keys as PEXPIRETIME replies them: unix ms, or negative.
func ends(ctx context.Context, rdb *redis.Client, keys []string) ([]int64, error) {
	pipe := rdb.Pipeline()
	var cmds []*redis.Cmd
	for _, key := range keys {
		cmds = append(cmds, pipe.Do(ctx, "PEXPIRETIME", key))
	}
	if len(keys) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	var all []int64
	for _, c := range cmds {
		n, err := c.Int64()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}
