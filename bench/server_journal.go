package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A keeper is a server with a journal, or without one to compare with.
type keeper struct {
	name   string
	policy string // appendfsync; "": no journal
	start  func(dir, policy string) *contender
}

func keeperOf(name, dir, policy string) keeper {
	return keeper{name, policy, func(data, policy string) *contender {
		args := []string{"--dir", data, "--repl-diskless-sync-delay", "0"}
		if policy != "" {
			args = append(args, "--appendonly", "yes", "--appendfsync", policy, "--auto-aof-rewrite-percentage", "0")
		}
		return startRedisOf(name, dir, args...)
	}}
}

func ourKeeper(policy string) keeper {
	return keeper{theDouble, policy, func(dir, policy string) *contender {
		if policy == "" {
			return startMayfly()
		}
		return startMayfly("--dir", dir, "--appendfsync", policy)
	}}
}

// keepers are those with a policy: ours, Redis 8, and Redis 8.6 where it is.
func keepers(policy string) []keeper {
	all := []keeper{ourKeeper(policy), keeperOf(realRedis, redisDir(), policy)}
	if dir := os.Getenv("MAYFLY_REDIS86_BIN"); dir != "" {
		all = append(all, keeperOf("Redis 8.6", dir, policy))
	}
	return all
}

func (k keeper) String() string {
	if k.policy == "" {
		return k.name + ", no journal"
	}
	return k.name + ", " + k.policy
}

// journal measures the cost of keeping a server's data, next to Redis's own journal on the same disk.
func journal(w io.Writer, o settings) {
	writing(w, o)
	compacting(w, o)
	starts(w, o)
	syncs(w, o)
}

// writing measures SETs with and without a journal.
func writing(w io.Writer, o settings) {
	requests, rounds := o.scale(200_000, 5_000), o.scale(5, 1)
	all := append(append(keepers(""), keepers("everysec")...), keepers("always")...)
	fmt.Fprintf(w, `SETs of 64 bytes by 50 clients, medians of %d interleaved rounds of %d requests (16 at a time: five times as many; always: a tenth): processor time of the
server's process in us a SET, and thousands of SETs a second. Everysec is to keep 0.9 of the rate without a journal, and to be as fast as Redis with the same
setting; so is always.

| server | one at a time | a second | 16 at a time | a second |
| --- | --- | --- | --- | --- |
`, rounds, requests)
	type figures struct{ cpu, rate [2][]float64 }
	got := make([]figures, len(all))
	for range rounds {
		for i, k := range all {
			n := requests
			if k.policy == "always" {
				n /= 10
			}
			dir := must(os.MkdirTemp("", "mayfly-journal"))
			s := k.start(dir, k.policy)
			for j, way := range [][]string{{"-n", strconv.Itoa(n)}, {"-n", strconv.Itoa(5 * n), "-P", "16"}} {
				before := s.cpu()
				row := setting(s, append([]string{"-c", "50", "-d", "64", "-r", "100000"}, way...)...)
				got[i].rate[j] = append(got[i].rate[j], row.perSecond/1000)
				got[i].cpu[j] = append(got[i].cpu[j], float64((s.cpu()-before).Microseconds())/float64(n*(1+4*j)))
			}
			s.stop()
			os.RemoveAll(dir)
		}
	}
	for i, k := range all {
		f := &got[i]
		fmt.Fprintf(w, "| %s | %.1f | %.0f | %.2f | %.0f |\n", k, median(f.cpu[0]), median(f.rate[0]), median(f.cpu[1]), median(f.rate[1]))
	}
}

// compacting measures how a compaction affects other clients.
func compacting(w io.Writer, o settings) {
	keys, rounds := o.scale(1_000_000, 20_000), o.scale(5, 1)
	fmt.Fprintf(w, `
SETs of 100 bytes by 8 clients over %d keys, p99 in ms as redis-benchmark has it, calm and while the journal is compacted; medians of %d rounds. The bound is 2 x.

| server | calm | while compacting | x |
| --- | --- | --- | --- |
`, keys, rounds)
	for _, k := range keepers("everysec") {
		dir := must(os.MkdirTemp("", "mayfly-journal"))
		s := k.start(dir, k.policy)
		rdb := s.client()
		fillKeys(rdb, keys)
		how := []string{"-c", "8", "-d", "100", "-r", strconv.Itoa(keys), "-n", strconv.Itoa(o.scale(60_000, 5_000))}
		var calm, busy []float64
		for range rounds {
			calm = append(calm, setting(s, how...).p99)
			if err := rdb.BgRewriteAOF(context.Background()).Err(); err != nil {
				panic(err)
			}
			busy = append(busy, setting(s, how...).p99)
			for s.info(rdb, "aof_rewrite_in_progress") != 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		bound := 0.0
		if k.name == theDouble {
			bound = 2
		}
		fmt.Fprintf(w, "| %s | %.2f | %.2f | %s |\n", k, median(calm), median(busy), verdict(ratio(busy, calm), bound, false))
		rdb.Close()
		s.stop()
		os.RemoveAll(dir)
	}
}

// starts measures how long a server takes to read a journal: each reads its own copy of one that Redis wrote.
func starts(w io.Writer, o settings) {
	keys, rounds := o.scale(1_000_000, 20_000), o.scale(3, 1)
	written := must(os.MkdirTemp("", "mayfly-journal"))
	defer os.RemoveAll(written)
	s := keeperOf(realRedis, redisDir(), "everysec").start(written, "everysec")
	rdb := s.client()
	fillKeys(rdb, keys)
	rdb.Shutdown(context.Background())
	rdb.Close()
	s.cmd.Wait()
	fmt.Fprintf(w, `
From the start of the process to its first answer, on a journal of %d SETs with a deadline that Redis wrote, in seconds; medians of %d interleaved rounds.

| server | seconds | x Redis 8 |
| --- | --- | --- |
`, keys, rounds)
	all := keepers("everysec")
	took := make([][]float64, len(all))
	for range rounds {
		for i, k := range all {
			dir := must(os.MkdirTemp("", "mayfly-journal"))
			if err := os.CopyFS(dir, os.DirFS(written)); err != nil {
				panic(err)
			}
			began := time.Now()
			s := k.start(dir, k.policy)
			rdb := s.client()
			for rdb.DBSize(context.Background()).Val() != int64(keys) {
				if time.Since(began) > time.Minute {
					panic(k.name + " has not read all keys")
				}
				time.Sleep(5 * time.Millisecond)
			}
			took[i] = append(took[i], time.Since(began).Seconds())
			rdb.Close()
			s.stop()
			os.RemoveAll(dir)
		}
	}
	for i, k := range all {
		bound := 0.0
		if k.name == theDouble {
			bound = 1
		}
		fmt.Fprintf(w, "| %s | %.2f | %s |\n", k.name, median(took[i]), verdict(ratio(took[i], took[1]), bound, false))
	}
}

// syncs measures how long it takes to send all keys to an empty Redis 8.
func syncs(w io.Writer, o settings) {
	keys, rounds := o.scale(1_000_000, 20_000), o.scale(3, 1)
	fmt.Fprintf(w, `
A full synchronisation of %d keys to an empty Redis 8: seconds until it says that its link is up, and the memory of the master's process meanwhile over what it had
before (resident, the most). Medians of %d rounds; the bounds are 1.3 x the time between two Redis, and 1.3 x the memory.

| master | seconds | x Redis 8 | memory before | most | x |
| --- | --- | --- | --- | --- | --- |
`, keys, rounds)
	all := keepers("")
	masters := make([]*contender, len(all))
	for i, k := range all {
		masters[i] = k.start(must(os.MkdirTemp("", "mayfly-journal")), "")
		rdb := masters[i].client()
		fillKeys(rdb, keys)
		rdb.Close()
	}
	defer stopAll(masters)
	took, before, most := make([][]float64, len(all)), make([][]float64, len(all)), make([][]float64, len(all))
	for range rounds {
		for i, m := range masters {
			dir := must(os.MkdirTemp("", "mayfly-journal"))
			to := startRedisOf(realRedis, redisDir(), "--dir", dir)
			rdb := to.client()
			host, port, _ := net.SplitHostPort(m.addr)
			had := m.resident()
			peak, began := had, time.Now()
			if err := rdb.SlaveOf(context.Background(), host, port).Err(); err != nil {
				panic(err)
			}
			for !strings.Contains(rdb.Info(context.Background(), "replication").Val(), "master_link_status:up") {
				peak = max(peak, m.resident())
				time.Sleep(5 * time.Millisecond)
			}
			took[i] = append(took[i], time.Since(began).Seconds())
			before[i], most[i] = append(before[i], had), append(most[i], peak)
			if n := rdb.DBSize(context.Background()).Val(); n != int64(keys) {
				panic(fmt.Sprint(n, " keys arrived"))
			}
			rdb.Close()
			to.stop()
			os.RemoveAll(dir)
		}
	}
	for i, k := range all {
		time, memory := 0.0, 0.0
		if k.name == theDouble {
			time, memory = 1.3, 1.3
		}
		fmt.Fprintf(w, "| %s | %.2f | %s | %.0f MB | %.0f MB | %s |\n", k.name, median(took[i]), verdict(ratio(took[i], took[1]), time, false),
			median(before[i]), median(most[i]), verdict(ratio(most[i], before[i]), memory, false))
	}
}

// resident is how much memory the process has, in MB.
func (c *contender) resident() float64 {
	for line := range strings.Lines(string(must(os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))))) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return float64(must(strconv.Atoi(strings.Fields(kb)[0]))) / 1024
		}
	}
	panic("no VmRSS")
}

// rates are redis-benchmark's figures for one test.
type rates struct{ perSecond, p99 float64 }

// setting runs SETs of redis-benchmark.
func setting(s *contender, how ...string) rates {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(filepath.Join(redisDir(), "redis-benchmark"), append([]string{"-h", host, "-p", port, "-t", "set", "--csv"}, how...)...)
	cmd.Stderr = os.Stderr
	rows := must(csv.NewReader(bytes.NewReader(must(cmd.Output()))).ReadAll())
	if len(rows) != 2 {
		panic(fmt.Sprint("redis-benchmark told ", rows))
	}
	column := func(name string) float64 {
		for i, head := range rows[0] {
			if head == name {
				return must(strconv.ParseFloat(rows[1][i], 64))
			}
		}
		panic("redis-benchmark does not tell " + name)
	}
	return rates{column("rps"), column("p99_latency_ms")}
}
