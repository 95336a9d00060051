package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/journal"
)

const aboutServe = `Serve runs an in-memory server that behaves like Redis 8.0, for redis-cli and programs in any language: same commands, same errors, and
above all the same expiry. The data is lost when the process ends, unless --dir keeps it. It is for development and tests, and does not
replace Redis in production.`

// serve is mayfly serve: it serves until ctx ends.
func serve(ctx context.Context, args []string, out io.Writer) error {
	var o engine.Options
	flags := newFlags("serve", aboutServe)
	addr := flags.String("addr", "127.0.0.1:6379", "`host:port` to listen on")
	flags.StringVar(&o.Password, "requirepass", "", "`password` that clients must AUTH with")
	protected := flags.String("protected-mode", "yes", "refuse connections from other hosts while no password is set: `yes or no`")
	flags.IntVar(&o.Hz, "hz", 0, "run Redis's documented expiry cycle this many `times` a second, 1 to 500;\n0 removes each key at its deadline")
	flags.Func("maxmemory", "the `size` that the data of each server may take, such as 100mb or 1gb (default no limit)", func(text string) (err error) {
		o.MaxMemory, err = size(text)
		return err
	})
	flags.StringVar(&o.Policy, "maxmemory-policy", "", "which keys to evict when memory is full: a Redis `policy` such as allkeys-lru (default noeviction)")
	var kept journal.Options
	flags.StringVar(&kept.Dir, "dir", "", "keep the data in this `directory`, in the file format that Redis uses with appendonly yes")
	flags.StringVar(&kept.Fsync, "appendfsync", "", "with --dir: the `policy` for syncing writes to disk, so that they survive a crash of the machine: always, everysec or no (default everysec)")
	var of followed
	flags.Func("replicaof", "replicate the server at this `host:port`, or redis://user:password@host:port (rediss:// for TLS),\nuntil REPLICAOF NO ONE", func(text string) (err error) {
		of, err = parseFollowed(text)
		return err
	})
	var masters int
	flags.BoolFunc("cluster", "run a Redis Cluster of 3 masters, or of n with --cluster=`n`; they listen on consecutive ports, the first on that of --addr", func(text string) (err error) {
		if text == "true" { // there was no "=n"
			text = "3"
		}
		if masters, err = strconv.Atoi(text); err != nil || masters < 1 || masters > 1000 {
			return errors.New("want a number between 1 and 1000")
		}
		return nil
	})
	if err := flags.parse(args, out); err != nil {
		return err
	}
	o.Protected = *protected == "yes"
	switch {
	case *protected != "yes" && *protected != "no":
		return usage("serve", "--protected-mode must be yes or no, got %q", *protected)
	case kept.Fsync != "" && kept.Dir == "":
		return usage("serve", "--appendfsync needs --dir")
	case kept.Fsync != "" && !slices.Contains(journal.Policies, kept.Fsync):
		return usage("serve", "--appendfsync must be one of %s, got %q", strings.Join(journal.Policies, ", "), kept.Fsync)
	case kept.Dir != "" && masters > 0:
		return usage("serve", "--dir works with a single server only: leave --cluster out")
	case of.host != "" && masters > 0:
		return usage("serve", "--replicaof works with a single server only: leave --cluster out")
	case o.Hz < 0 || o.Hz > 500:
		return usage("serve", "--hz must be between 0 and 500, got %d", o.Hz)
	case o.Policy != "" && !slices.Contains(engine.Policies, o.Policy):
		return usage("serve", "--maxmemory-policy must be one of %s, got %q", strings.Join(engine.Policies, ", "), o.Policy)
	}
	if _, _, err := net.SplitHostPort(*addr); err != nil {
		return usage("serve", "--addr must be host:port: %v", err)
	}
	if o.Hz > 0 {
		o.Cycle = engine.Documented
	}
	n, err := open(*addr, masters, o, kept, of)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("serve: %w: choose another with --addr, or port 0 for any that is free", err)
	}
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if masters > 0 {
		fmt.Fprintf(out, "mayfly: a Redis Cluster of %d, without replicas\n", masters)
	}
	for _, l := range n.listeners {
		fmt.Fprintf(out, "mayfly: speaks Redis 8.0 on %s\n", l.Addr())
	}
	if tcp, ok := n.listeners[0].Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && o.Protected && o.Password == "" {
		fmt.Fprintln(out, "mayfly: connections from other hosts are refused: allow them with --requirepass or --protected-mode no")
	}
	if of.host != "" {
		fmt.Fprintf(out, "mayfly: follows %s: writes are refused until REPLICAOF NO ONE; INFO replication shows the state\n", of)
	}
	if n.journal == nil {
		fmt.Fprintln(out, "mayfly: all data is in memory and is lost when this process ends: for development and tests, not a replacement for Redis in production")
	} else {
		if r := n.recovered; r.Cut > 0 {
			fmt.Fprintf(out, "mayfly: removed the last %d bytes of %s, from %d on: a write that a crash had cut short\n", r.Cut, r.CutFile, r.CutAt)
		}
		fmt.Fprintf(out, "mayfly: found %d keys in %s; %d have expired since: for development and tests, not a replacement for Redis in production\n",
			n.recovered.Keys, kept.Dir, n.recovered.Ended)
	}
	watch, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	if of.host != "" {
		watching.Go(func() { tellOfLink(watch, n.link, out) })
	}
	err = n.serve(ctx)
	end()
	watching.Wait()
	if err == nil {
		fmt.Fprintln(out, "mayfly: stopping")
	}
	stop, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	late := n.close(stop)
	if errors.Is(late, context.DeadlineExceeded) {
		fmt.Fprintln(out, "mayfly: cut connections that did not read their replies")
	} else if late != nil {
		err = errors.Join(err, fmt.Errorf("serve: %w", late))
	}
	return err
}

// size parses a number of bytes as in Redis's configuration: 1k is 1000, 1kb is 1024.
func size(text string) (int64, error) {
	units := map[string]int64{"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30}
	digits := strings.TrimRight(strings.ToLower(text), "bkmg")
	unit := units[strings.ToLower(text)[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if unit == 0 || err != nil || n < 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("%q is not a size such as 100mb", text)
	}
	return n * unit, nil
}
