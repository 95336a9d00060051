package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// infoCommands are INFO.
var infoCommands = []Command{
	{Name: "info", Arity: -1, Flags: Loading | Stale, Cats: CatDangerous, run: infoCommand},
}

// infoText are the sections and fields of INFO, in Redis 8's order. A field with a value always has that one, since what it counts does not happen
// here: forks, replicas, defragmentation. The others are in infoFigures. What this engine cannot say truly (its C compiler, its threads) is left out.
const infoText = `# Server
redis_version
redis_git_sha1:00000000
redis_git_dirty:0
server_name:mayfly
redis_mode
os
arch_bits
process_id
process_supervised:no
run_id
tcp_port
server_time_usec
uptime_in_seconds
uptime_in_days
hz
configured_hz
lru_clock
config_file:
io_threads_active:0

# Clients
connected_clients
cluster_connections:0
maxclients:10000
blocked_clients
tracking_clients
pubsub_clients
watching_clients
clients_in_timeout_table
total_watched_keys
total_blocking_keys
total_blocking_keys_on_nokey:0

# Memory
used_memory
used_memory_human
used_memory_rss
used_memory_rss_human
used_memory_peak
used_memory_peak_human
used_memory_peak_perc
used_memory_overhead
used_memory_startup
used_memory_dataset
used_memory_dataset_perc
allocator_allocated
allocator_active
allocator_resident
allocator_muzzy:0
used_memory_scripts_eval
number_of_cached_scripts
number_of_functions:0
number_of_libraries:0
used_memory_functions:0
used_memory_scripts
used_memory_scripts_human
maxmemory
maxmemory_human
maxmemory_policy
mem_fragmentation_ratio
mem_fragmentation_bytes
mem_not_counted_for_evict:0
mem_replication_backlog
mem_total_replication_buffers:0
mem_replica_full_sync_buffer:0
mem_clients_slaves:0
mem_cluster_links:0
mem_aof_buffer:0
mem_allocator:go
mem_overhead_db_hashtable_rehashing:0
active_defrag_running:0
lazyfree_pending_objects:0
lazyfreed_objects:0

# Persistence
loading:0
async_loading:0
current_cow_peak:0
current_cow_size:0
current_cow_size_age:0
current_fork_perc:0.00
current_save_keys_processed:0
current_save_keys_total:0
rdb_changes_since_last_save
rdb_bgsave_in_progress:0
rdb_last_save_time
rdb_last_bgsave_status:ok
rdb_last_bgsave_time_sec:-1
rdb_current_bgsave_time_sec:-1
rdb_saves:0
rdb_last_cow_size:0
rdb_last_load_keys_expired:0
rdb_last_load_keys_loaded:0
aof_enabled
aof_rewrite_in_progress
aof_rewrite_scheduled:0
aof_last_rewrite_time_sec:-1
aof_current_rewrite_time_sec:-1
aof_last_bgrewrite_status
aof_rewrites:0
aof_rewrites_consecutive_failures:0
aof_last_write_status
aof_last_cow_size:0
module_fork_in_progress:0
module_fork_last_cow_size:0
(log)

# Stats
total_connections_received
total_commands_processed
total_net_repl_input_bytes:0
total_net_repl_output_bytes:0
instantaneous_input_repl_kbps:0.00
instantaneous_output_repl_kbps:0.00
rejected_connections
sync_full
sync_partial_ok
sync_partial_err
expired_subkeys
expired_keys
expired_stale_perc
expired_time_cap_reached_count:0
evicted_keys
evicted_clients:0
evicted_scripts
total_eviction_exceeded_time:0
current_eviction_exceeded_time:0
keyspace_hits
keyspace_misses
pubsub_channels
pubsub_patterns
pubsubshard_channels
latest_fork_usec:0
total_forks:0
migrate_cached_sockets:0
slave_expires_tracked_keys:0
active_defrag_hits:0
active_defrag_misses:0
active_defrag_key_hits:0
active_defrag_key_misses:0
total_active_defrag_time:0
current_active_defrag_time:0
tracking_total_keys
tracking_total_items
tracking_total_prefixes
unexpected_error_replies:0
total_error_replies
dump_payload_sanitizations:0
io_threaded_reads_processed:0
io_threaded_writes_processed:0
acl_access_denied_auth
acl_access_denied_cmd:0
acl_access_denied_key:0
acl_access_denied_channel:0

# Replication
role:master
(replicas)
master_failover_state:no-failover
master_replid
master_replid2:0000000000000000000000000000000000000000
master_repl_offset
second_repl_offset:-1
repl_backlog_active
repl_backlog_size:1048576
repl_backlog_first_byte_offset
repl_backlog_histlen

# Modules

# Errorstats
(errors)

# Cluster
cluster_enabled

# Keyspace
(keyspace)`

// infoSections are the sections of infoText: the name, then the lines.
var infoSections = func() (sections [][]string) {
	for section := range strings.SplitSeq(infoText, "\n\n") {
		sections = append(sections, strings.Split(strings.TrimPrefix(section, "# "), "\n"))
	}
	return sections
}()

func infoCommand(c *call) {
	wanted := func(string) bool { return true }
	if len(c.args) > 1 {
		wanted = func(name string) bool {
			return slices.ContainsFunc(c.args[1:], func(arg []byte) bool {
				return is(arg, "ALL") || is(arg, "DEFAULT") || is(arg, "EVERYTHING") || is(arg, strings.ToUpper(name))
			})
		}
	}
	var w strings.Builder
	n := c.e.count()
	for _, section := range infoSections {
		if !wanted(section[0]) {
			continue
		}
		if w.Len() > 0 {
			w.WriteString("\r\n")
		}
		w.WriteString("# " + section[0] + "\r\n")
		for _, field := range section[1:] {
			if name, value, always := strings.Cut(field, ":"); always {
				line(&w, name, value)
			} else if lines, ok := infoLines[field]; ok {
				lines(c.e, &w)
			} else {
				line(&w, field, infoFigures[field](n))
			}
		}
	}
	c.out.Verbatim("txt", w.String())
}

func line(w *strings.Builder, name string, value any) { fmt.Fprintf(w, "%s:%v\r\n", name, value) }

// infoLines are the parts of INFO with as many lines as there is to say.
var infoLines = map[string]func(e *Engine, w *strings.Builder){
	"(errors)": infoErrors, "(keyspace)": infoKeyspace, "(log)": infoLog, "(replicas)": infoReplicas,
}

// counting is the engine with what is counted once for a whole INFO.
type counting struct {
	*Engine
	used, scriptBytes                              int64
	blocked, subscribed, watching, watched, waited int
	heap, heapInUse, resident                      int64 // of the process
}

func (e *Engine) count() *counting {
	n := &counting{Engine: e, used: e.weight()}
	e.peak = max(e.peak, n.used)
	for _, s := range e.sessions {
		n.blocked += oneIf(s.Waiting())
		n.subscribed += oneIf(s.Subscribed())
		n.watching += oneIf(len(s.watches) > 0)
	}
	for _, d := range e.dbs {
		n.watched += len(d.watched)
		n.waited += len(d.blocked)
	}
	for _, chunk := range e.scripts.chunks {
		n.scriptBytes += int64(len(chunk.Source))
	}
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	bytes := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	n.heap, n.heapInUse, n.resident = bytes(0), bytes(0)+bytes(1), bytes(2)-bytes(3)
	return n
}

// percent writes a share as INFO does.
func percent(part, whole int64) string {
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(max(whole, 1)))
}

// infoFigures are the fields of INFO that are counted.
var infoFigures = map[string]func(n *counting) any{
	"redis_version":     func(*counting) any { return Version },
	"redis_mode":        func(n *counting) any { return n.mode() },
	"os":                func(*counting) any { return runtime.GOOS + " " + runtime.GOARCH },
	"arch_bits":         func(*counting) any { return 32 << (^uint(0) >> 63) },
	"process_id":        func(*counting) any { return os.Getpid() },
	"run_id":            func(n *counting) any { return hexID(rand.NewPCG(n.options.Seed, 2)) },
	"tcp_port":          func(n *counting) any { return n.port },
	"server_time_usec":  func(n *counting) any { return n.now },
	"uptime_in_seconds": func(n *counting) any { return n.uptime() },
	"uptime_in_days":    func(n *counting) any { return n.uptime() / 86400 },
	"hz":                func(n *counting) any { return n.settings.hz },
	"configured_hz":     func(n *counting) any { return n.settings.hz },
	"lru_clock":         func(n *counting) any { return uint32(n.now/1e6) & accessMask },

	"connected_clients":        func(n *counting) any { return len(n.sessions) - n.blocked },
	"blocked_clients":          func(n *counting) any { return n.blocked },
	"tracking_clients":         func(n *counting) any { return n.tracking.sessions },
	"pubsub_clients":           func(n *counting) any { return n.subscribed },
	"watching_clients":         func(n *counting) any { return n.watching },
	"clients_in_timeout_table": func(n *counting) any { return n.waits.Len() },
	"total_watched_keys":       func(n *counting) any { return n.watched },
	"total_blocking_keys":      func(n *counting) any { return n.waited },

	"used_memory":               func(n *counting) any { return n.used },
	"used_memory_human":         func(n *counting) any { return human(n.used) },
	"used_memory_rss":           func(n *counting) any { return n.resident },
	"used_memory_rss_human":     func(n *counting) any { return human(n.resident) },
	"used_memory_peak":          func(n *counting) any { return n.peak },
	"used_memory_peak_human":    func(n *counting) any { return human(n.peak) },
	"used_memory_peak_perc":     func(n *counting) any { return percent(n.used, n.peak) },
	"used_memory_overhead":      func(*counting) any { return emptyWeight },
	"used_memory_startup":       func(*counting) any { return emptyWeight },
	"used_memory_dataset":       func(n *counting) any { return n.used - emptyWeight },
	"used_memory_dataset_perc":  func(n *counting) any { return percent(n.used-emptyWeight, n.used-emptyWeight) },
	"allocator_allocated":       func(n *counting) any { return n.heap },
	"allocator_active":          func(n *counting) any { return n.heapInUse },
	"allocator_resident":        func(n *counting) any { return n.resident },
	"used_memory_scripts_eval":  func(n *counting) any { return n.scriptBytes },
	"number_of_cached_scripts":  func(n *counting) any { return len(n.Engine.scripts.chunks) },
	"used_memory_scripts":       func(n *counting) any { return n.scriptBytes },
	"used_memory_scripts_human": func(n *counting) any { return human(n.scriptBytes) },
	"maxmemory":                 func(n *counting) any { return n.settings.maxMemory },
	"maxmemory_human":           func(n *counting) any { return human(n.settings.maxMemory) },
	"maxmemory_policy":          func(n *counting) any { return Policies[n.settings.policy] },
	"mem_fragmentation_ratio":   func(n *counting) any { return fmt.Sprintf("%.2f", float64(n.resident)/float64(max(n.used, 1))) },
	"mem_fragmentation_bytes":   func(n *counting) any { return n.resident - n.used },

	"rdb_changes_since_last_save": func(n *counting) any { return n.changes },
	"rdb_last_save_time":          func(n *counting) any { return n.began / 1e6 },

	"total_connections_received": func(n *counting) any { return n.stats.connections },
	"total_commands_processed":   func(n *counting) any { return n.stats.commands },
	"rejected_connections":       func(n *counting) any { return n.stats.rejected },
	"expired_subkeys":            func(n *counting) any { return n.stats.expiredFields },
	"expired_keys":               func(n *counting) any { return n.stats.expiredKeys },
	"expired_stale_perc":         func(n *counting) any { return fmt.Sprintf("%.2f", n.stalePercent()) },
	"evicted_keys":               func(n *counting) any { return n.stats.evictedKeys },
	"evicted_scripts":            func(n *counting) any { return n.stats.evictedScripts },
	"keyspace_hits":              func(n *counting) any { return n.stats.hits },
	"keyspace_misses":            func(n *counting) any { return n.stats.misses },
	"pubsub_channels":            func(n *counting) any { return len(n.pubsub[channels]) },
	"pubsub_patterns":            func(n *counting) any { return len(n.pubsub[patterns]) },
	"pubsubshard_channels":       func(n *counting) any { return len(n.pubsub[shards]) },
	"tracking_total_keys":        func(n *counting) any { return len(n.tracking.readers) },
	"tracking_total_items":       func(n *counting) any { return n.tracking.items },
	"tracking_total_prefixes":    func(n *counting) any { return len(n.tracking.prefixes) },
	"total_error_replies":        func(n *counting) any { return n.stats.errorReplies },
	"acl_access_denied_auth":     func(n *counting) any { return n.stats.errors["WRONGPASS"] },

	"aof_enabled":               func(n *counting) any { return oneIf(n.log != nil) },
	"aof_rewrite_in_progress":   func(n *counting) any { return oneIf(n.logState().Compacting) },
	"aof_last_bgrewrite_status": func(n *counting) any { return logStatus(n.logState().CompactError) },
	"aof_last_write_status":     func(n *counting) any { return logStatus(n.logState().WriteError) },

	"sync_full":        func(n *counting) any { return n.stats.fullSyncs },
	"sync_partial_ok":  func(n *counting) any { return n.stats.partialSyncs },
	"sync_partial_err": func(n *counting) any { return n.stats.refusedSyncs },

	"mem_replication_backlog":        func(n *counting) any { return cap(n.feed.backlog) },
	"master_replid":                  func(n *counting) any { return n.replicationID() },
	"master_repl_offset":             func(n *counting) any { return n.feed.offset },
	"repl_backlog_active":            func(n *counting) any { return oneIf(n.feed.on) },
	"repl_backlog_first_byte_offset": func(n *counting) any { return n.feed.offset - int64(len(n.feed.backlog)) + int64(oneIf(n.feed.on)) },
	"repl_backlog_histlen":           func(n *counting) any { return len(n.feed.backlog) },

	"cluster_enabled": func(n *counting) any { return oneIf(n.options.Cluster != nil) },
}

// uptime is how many seconds the engine has been asked for anything.
func (e *Engine) uptime() int64 {
	if e.began == 0 {
		return 0
	}
	return max(e.now-e.began, 0) / 1e6
}

// mode is what Redis calls its way of running.
func (e *Engine) mode() string {
	if e.options.Cluster != nil {
		return "cluster"
	}
	return "standalone"
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
