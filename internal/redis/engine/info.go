package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// infoCommands are INFO.
var infoCommands = []Command{
	{Name: "info", Arity: -1, Flags: Loading | Stale, Cats: CatDangerous, run: infoCommand},
}

// infoSections are INFO's, in order. The figures are the engine's own and are true; what it has not, Redis's reply or not, it does not
// print.
var infoSections = []struct {
	name  string
	write func(e *Engine, w *strings.Builder)
}{
	{"Server", infoServer},
	{"Clients", infoClients},
	{"Memory", infoMemory},
	{"Persistence", infoPersistence},
	{"Stats", infoStats},
	{"Replication", infoReplication},
	{"Errorstats", infoErrors},
	{"Cluster", infoCluster},
	{"Keyspace", infoKeyspace},
}

func infoCommand(c *call) {
	wanted := func(name string) bool { return true }
	if len(c.args) > 1 {
		wanted = func(name string) bool {
			return slices.ContainsFunc(c.args[1:], func(arg []byte) bool {
				return is(arg, "ALL") || is(arg, "DEFAULT") || is(arg, "EVERYTHING") || is(arg, strings.ToUpper(name))
			})
		}
	}
	var w strings.Builder
	for _, section := range infoSections {
		if !wanted(section.name) {
			continue
		}
		if w.Len() > 0 {
			w.WriteString("\r\n")
		}
		w.WriteString("# " + section.name + "\r\n")
		section.write(c.e, &w)
	}
	c.out.Verbatim("txt", w.String())
}

func line(w *strings.Builder, name string, value any) { fmt.Fprintf(w, "%s:%v\r\n", name, value) }

func infoServer(e *Engine, w *strings.Builder) {
	line(w, "redis_version", Version)
	line(w, "server_name", "mayfly")
	line(w, "redis_mode", e.mode())
	line(w, "os", runtime.GOOS+" "+runtime.GOARCH)
	line(w, "run_id", hexID(rand.NewPCG(e.options.Seed, 2)))
	line(w, "arch_bits", 32<<(^uint(0)>>63))
	line(w, "server_time_usec", e.now)
	line(w, "hz", e.settings.hz)
	line(w, "configured_hz", e.settings.hz)
	line(w, "lru_clock", uint32(e.now/1e6)&accessMask)
}

// mode is what Redis calls its way of running.
func (e *Engine) mode() string {
	if e.options.Cluster != nil {
		return "cluster"
	}
	return "standalone"
}

func infoClients(e *Engine, w *strings.Builder) {
	var blocked, subscribed, watching, watched, waited int
	for _, s := range e.sessions {
		blocked += oneIf(s.Waiting())
		subscribed += oneIf(s.Subscribed())
		watching += oneIf(len(s.watches) > 0)
	}
	for _, d := range e.dbs {
		watched += len(d.watched)
		waited += len(d.blocked)
	}
	line(w, "connected_clients", len(e.sessions)-blocked)
	line(w, "maxclients", 10000)
	line(w, "blocked_clients", blocked)
	line(w, "tracking_clients", e.tracking.sessions)
	line(w, "pubsub_clients", subscribed)
	line(w, "watching_clients", watching)
	line(w, "clients_in_timeout_table", e.waits.Len())
	line(w, "total_watched_keys", watched)
	line(w, "total_blocking_keys", waited)
}

func infoMemory(e *Engine, w *strings.Builder) {
	used := e.weight()
	line(w, "used_memory", used)
	line(w, "used_memory_human", human(used))
	line(w, "used_memory_startup", emptyWeight)
	line(w, "used_memory_dataset", used-emptyWeight)
	line(w, "maxmemory", e.settings.maxMemory)
	line(w, "maxmemory_human", human(e.settings.maxMemory))
	line(w, "maxmemory_policy", Policies[e.settings.policy])
	line(w, "mem_allocator", "go")
}

// human writes a number of bytes as INFO does: 1.00K.
func human(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	f := float64(n) / 1024
	for _, unit := range "KMGTP" {
		if f < 1024 {
			return fmt.Sprintf("%.2f%c", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%dB", n)
}

func infoPersistence(e *Engine, w *strings.Builder) {
	line(w, "loading", 0)
	line(w, "async_loading", 0)
	line(w, "rdb_changes_since_last_save", e.changes)
	line(w, "rdb_bgsave_in_progress", 0)
	infoLog(e.log, w)
}

func infoStats(e *Engine, w *strings.Builder) {
	s := &e.stats
	line(w, "total_connections_received", s.connections)
	line(w, "total_commands_processed", s.commands)
	line(w, "expired_subkeys", s.expiredFields)
	line(w, "expired_keys", s.expiredKeys)
	line(w, "expired_stale_perc", fmt.Sprintf("%.2f", e.stalePercent()))
	line(w, "evicted_keys", s.evictedKeys)
	line(w, "sync_full", s.fullSyncs)
	line(w, "sync_partial_ok", s.partialSyncs)
	line(w, "sync_partial_err", s.refusedSyncs)
	line(w, "keyspace_hits", s.hits)
	line(w, "keyspace_misses", s.misses)
	line(w, "pubsub_channels", len(e.pubsub[channels]))
	line(w, "pubsub_patterns", len(e.pubsub[patterns]))
	line(w, "pubsubshard_channels", len(e.pubsub[shards]))
	line(w, "tracking_total_keys", len(e.tracking.readers))
	line(w, "tracking_total_items", e.tracking.items)
	line(w, "tracking_total_prefixes", len(e.tracking.prefixes))
	line(w, "total_error_replies", s.errorReplies)
}

// sampleDeadlines calls do with the deadlines of d, or with a thousand drawn where they are more.
func (e *Engine) sampleDeadlines(d *db, do func(ms int64)) {
	for range min(d.deadlines.Len(), 1000) {
		if id, ok := d.deadlines.Sample(e.draw()); ok {
			do(d.deadlines.Deadline(id))
		}
	}
}

// stalePercent is the share of keys with a deadline that are dead and not yet reaped.
func (e *Engine) stalePercent() float64 {
	var looked, dead float64
	for _, d := range e.dbs {
		e.sampleDeadlines(d, func(ms int64) {
			looked++
			if expiry.Dead(ms, e.ms) {
				dead++
			}
		})
	}
	return 100 * dead / max(looked, 1)
}

func infoErrors(e *Engine, w *strings.Builder) {
	for _, code := range slices.Sorted(maps.Keys(e.stats.errors)) {
		line(w, "errorstat_"+code, fmt.Sprintf("count=%d", e.stats.errors[code]))
	}
}

func infoCluster(e *Engine, w *strings.Builder) {
	line(w, "cluster_enabled", oneIf(e.options.Cluster != nil))
}

func infoKeyspace(e *Engine, w *strings.Builder) {
	for _, d := range e.dbs {
		if d.len() == 0 {
			continue
		}
		line(w, fmt.Sprintf("db%d", d.index), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d,subexpiry=%d",
			d.len(), d.deadlines.Len(), e.averageTTL(d), d.fields.Len()))
	}
}

// averageTTL is the mean time to live in d, in milliseconds.
func (e *Engine) averageTTL(d *db) int64 {
	var looked, sum float64
	e.sampleDeadlines(d, func(ms int64) {
		looked++
		sum += float64(max(ms-e.ms, 0))
	})
	return int64(sum / max(looked, 1))
}
