package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

const aboutHandover = `Handover moves all data from a served embedded engine (mayfly serve, or a program with embedded.DB.Serve) to a separate Redis while its
clients keep running: keys, values, and each key's deadline to the millisecond.

1. Check both servers. The target must be empty and large enough.
2. Make the target replicate the source (REPLICAOF) until it has everything.
3. Hold back writes to the source (CLIENT PAUSE) until the target has caught up.
4. Compare the number of keys, and the deadlines of a sample.
5. Promote the target (REPLICAOF NO ONE) and make the source its replica: it refuses writes with READONLY, and reads from it see what is
   written to the target. Handover prints the line to change in your program.

A failure before step 5 leaves the source as it was and taking writes, and the target detached. --dry-run does step 1 only.`

// statusHandover follows the statuses of every command.
const statusHandover = "3 when the target is promoted but the source does not follow it."

// handover is one run of the command.
type handover struct {
	from, to       *redis.Client
	fromOptions    *redis.Options
	toOptions      *redis.Options
	reach, back    string // host:port at which the target finds the source, and the source the target
	pause, within  time.Duration
	sample         int
	overwrite, dry bool
	out            io.Writer

	attached, held, promoted bool
	reached                  string            // how far it has come, for the error
	before                   map[string]string // what the target told its masters
}

// handOver is mayfly handover.
func handOver(ctx context.Context, args []string, out io.Writer) error {
	h := &handover{out: out}
	var from, to string
	flags := newFlags("handover", aboutHandover)
	flags.statuses = statusHandover
	flags.StringVar(&from, "from", "", "the `URL` of the source, such as redis://localhost:6379")
	flags.StringVar(&to, "to", "", "the `URL` of the target, a Redis 7.0 or newer, or Valkey")
	flags.StringVar(&h.reach, "reach", "", "`host:port` at which the target reaches the source, if it differs from that of --from")
	flags.StringVar(&h.back, "reach-back", "", "`host:port` at which the source reaches the target, if it differs from that of --to")
	flags.DurationVar(&h.pause, "pause", 30*time.Second, "how long writes may be held back at most; then they continue at the source, whatever the state of the handover")
	flags.DurationVar(&h.within, "within", 10*time.Minute, "how long the target may take to copy everything")
	flags.IntVar(&h.sample, "sample", 1000, "the `number` of keys in each database whose deadlines are compared")
	flags.BoolVar(&h.overwrite, "overwrite", false, "allow a target that holds keys, and discard them")
	flags.BoolVar(&h.dry, "dry-run", false, "only check both servers; change nothing")
	if err := flags.parse(args, out); err != nil {
		return err
	}
	if from == "" || to == "" {
		return usage("handover", "--from and --to are required: the server that has the data, and the one to move it to")
	}
	for name, addr := range map[string]string{"reach": h.reach, "reach-back": h.back} {
		if _, port, err := net.SplitHostPort(addr); addr != "" && (err != nil || port == "") {
			return usage("handover", "--%s must be host:port, got %q", name, addr)
		}
	}
	if h.pause < 2*time.Second || h.within < time.Second || h.sample < 0 {
		return usage("handover", "--pause must be 2s or more, --within 1s or more, and --sample not negative")
	}
	var err error
	if h.fromOptions, err = parseURL("--from", from); err != nil {
		return fmt.Errorf("handover: %w", err)
	}
	if h.toOptions, err = parseURL("--to", to); err != nil {
		return fmt.Errorf("handover: %w", err)
	}
	for _, o := range []*redis.Options{h.fromOptions, h.toOptions} {
		o.MaxRetries = -1 // go-redis must not send a command twice on its own
	}
	logging.Disable() // handover reports errors itself
	h.from, h.to = redis.NewClient(h.fromOptions), redis.NewClient(h.toOptions)
	defer h.from.Close()
	defer h.to.Close()
	return h.run(ctx)
}

// run takes the steps. The error says how far it came, and what state the servers are in.
func (h *handover) run(ctx context.Context) error {
	steps := []func(context.Context) error{h.look, h.attach, h.catchUp, h.hold, h.compare, h.promote}
	for i, step := range steps {
		err := step(ctx)
		if err == nil && i == 0 && h.dry {
			fmt.Fprintln(h.out, "mayfly: nothing was changed: leave --dry-run out to hand over")
			return nil
		}
		if err != nil {
			return fmt.Errorf("handover: %w. %s", err, h.giveUp(ctx))
		}
	}
	return h.finish(ctx)
}

func (h *handover) say(format string, args ...any) {
	fmt.Fprintf(h.out, "mayfly: "+format+"\n", args...)
}

// side is what INFO says about the source or the target.
type side struct {
	name, info string
	keys       map[string]string // by database: keys=...,expires=...
	total      int
}

// ask reads a server's INFO.
func (h *handover) ask(ctx context.Context, rdb *redis.Client, what string) (*side, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	info, err := rdb.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("the %s at %s: %w", what, rdb.Options().Addr, err)
	}
	s := &side{name: fmt.Sprintf("the %s at %s", what, rdb.Options().Addr), info: info, keys: map[string]string{}}
	for line := range strings.Lines(info) {
		name, text, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || !strings.HasPrefix(name, "db") || !strings.HasPrefix(text, "keys=") {
			continue
		}
		var keys, expires int
		fmt.Sscanf(text, "keys=%d,expires=%d", &keys, &expires)
		s.keys[name], s.total = fmt.Sprintf("%d keys, %d with a TTL", keys, expires), s.total+keys
	}
	return s, nil
}

func (s *side) number(name string) int64 {
	n, _ := strconv.ParseInt(field(s.info, name), 10, 64)
	return n
}

// look checks whether the handover is possible, without changing anything.
func (h *handover) look(ctx context.Context) error {
	from, err := h.ask(ctx, h.from, "source")
	if err != nil {
		return err
	}
	to, err := h.ask(ctx, h.to, "target")
	if err != nil {
		return err
	}
	var major, minor int
	fmt.Sscanf(field(to.info, "redis_version"), "%d.%d", &major, &minor)
	for _, s := range []*side{from, to} {
		switch {
		case field(s.info, "role") == "slave":
			return fmt.Errorf("%s is a replica of %s:%s: give its master, or promote it first", s.name, field(s.info, "master_host"), field(s.info, "master_port"))
		case field(s.info, "cluster_enabled") == "1":
			return fmt.Errorf("%s is a node of a cluster, which cannot receive data this way", s.name)
		}
	}
	switch memory, room := from.number("used_memory"), to.number("maxmemory"); {
	case field(from.info, "run_id") != "" && field(from.info, "run_id") == field(to.info, "run_id"):
		return fmt.Errorf("%s and %s are the same server", from.name, to.name)
	case major < oldest:
		return fmt.Errorf("%s is Redis %s: it must be 7.0 or newer", to.name, field(to.info, "redis_version"))
	case to.total > 0 && !h.overwrite:
		return fmt.Errorf("%s holds %d keys, which would be lost: empty it, or give --overwrite to discard them", to.name, to.total)
	case room > 0 && memory > room:
		return fmt.Errorf("%s may use %d bytes (maxmemory), but the data takes %d at the source", to.name, room, memory)
	}
	if fields := timedFields(from.info); fields > 0 && (major == 7 && minor < 4 || field(to.info, "valkey_version") != "") {
		return fmt.Errorf("%d hashes have fields with a TTL, which %s does not support: that needs Redis 7.4 or newer", fields, to.name)
	}
	h.say("%s holds %d keys; %s is Redis %s and holds %d", from.name, from.total, to.name, field(to.info, "redis_version"), to.total)
	return nil
}

// timedFields adds up how many hashes have fields with a TTL.
func timedFields(info string) (n int) {
	for line := range strings.Lines(info) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), "subexpiry="); ok {
			var some int
			fmt.Sscanf(text, "%d", &some)
			n += some
		}
	}
	return n
}

// follow makes rdb a replica of the server at addr; o has that server's user and password.
func follow(ctx context.Context, rdb *redis.Client, addr string, o *redis.Options) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if o.Password != "" {
		if err := rdb.ConfigSet(ctx, "masterauth", o.Password).Err(); err != nil {
			return fmt.Errorf("CONFIG SET masterauth: %w", err)
		}
	}
	if o.Username != "" {
		if err := rdb.ConfigSet(ctx, "masteruser", o.Username).Err(); err != nil {
			return fmt.Errorf("CONFIG SET masteruser: %w", err)
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if err := rdb.Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
		return fmt.Errorf("REPLICAOF %s %s: %w", host, port, err)
	}
	return nil
}

// attach makes the target replicate the source, and waits until it has copied everything.
func (h *handover) attach(ctx context.Context) error {
	addr := h.reach
	if addr == "" {
		addr = h.fromOptions.Addr
	}
	h.before = h.to.ConfigGet(ctx, "master[au]*").Val()
	h.attached, h.reached = true, "the target was told to follow, but it is unknown whether it does"
	if err := follow(ctx, h.to, addr, h.fromOptions); err != nil {
		return fmt.Errorf("the target cannot be told to follow: %w", err)
	}
	h.say("the target follows %s", addr)
	h.reached = "the target was told to follow, but does not have everything yet"
	began := time.Now()
	told := began
	return h.poll(ctx, h.within, func(ctx context.Context) (bool, error) {
		s, err := h.ask(ctx, h.to, "target")
		if err != nil {
			return false, err
		}
		if field(s.info, "master_link_status") == "up" {
			return true, nil
		}
		if time.Since(told) > 2*time.Second {
			told = time.Now()
			state := "has no connection to " + addr + ": can it reach that address? Give another with --reach; the target's log says more"
			if field(s.info, "master_sync_in_progress") == "1" {
				state = "is being sent the data: " + field(s.info, "master_sync_read_bytes") + " bytes so far"
			}
			h.say("after %v the target %s", time.Since(began).Round(time.Second), state)
		}
		return false, nil
	}, "the target was not in step within "+h.within.String()+": can it reach "+addr+"? Give another address with --reach")
}

// poll calls done until it succeeds or fails, ctx ends, or the time is up, whose error is late.
func (h *handover) poll(ctx context.Context, within time.Duration, done func(context.Context) (bool, error), late string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errors.New(late))
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
		if err != nil {
			return err
		}
	}
}

// behind returns how many bytes of the source's replication stream the target has not applied.
func (h *handover) behind(ctx context.Context) (int64, error) {
	from, err := h.ask(ctx, h.from, "source")
	if err != nil {
		return 0, err
	}
	to, err := h.ask(ctx, h.to, "target")
	if err != nil {
		return 0, err
	}
	if field(to.info, "role") != "slave" || field(to.info, "master_link_status") != "up" {
		return 1 << 40, nil
	}
	return from.number("master_repl_offset") - to.number("slave_repl_offset"), nil
}

// catchUp waits until the target is nearly in step, so that writes are held back only briefly.
func (h *handover) catchUp(ctx context.Context) error {
	h.reached = "the target has received everything once, and follows"
	const near = 1 << 20
	return h.poll(ctx, h.within, func(ctx context.Context) (bool, error) {
		n, err := h.behind(ctx)
		return n < near, err
	}, "the target does not keep up with the writes to the source")
}

// hold pauses writes to the source and waits until the target has applied all earlier ones.
func (h *handover) hold(ctx context.Context) error {
	h.held = true
	if err := h.from.Do(ctx, "CLIENT", "PAUSE", h.pause.Milliseconds(), "WRITE").Err(); err != nil {
		return fmt.Errorf("CLIENT PAUSE at the source: %w", err)
	}
	h.reached = "writes to the source were held back, and the target was not promoted yet"
	return h.poll(ctx, h.pause/4, func(ctx context.Context) (bool, error) {
		n, err := h.behind(ctx)
		return n <= 0, err
	}, "the target did not get the last writes within "+(h.pause/4).String())
}
