package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// infoCommands is INFO.
var infoCommands = []Command{
	{Name: "info", Arity: -1, Flags: Loading | Stale, Cats: CatDangerous, run: infoCommand},
}

// infoText has the sections and fields of INFO, in Redis 8's order. A field with a value always has that value, since what it counts does not
// happen here: forks, defragmentation. The others are in infoFigures. What this engine cannot say truthfully (its C compiler, its threads) is
// left out.
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
aof_rewrites_consecutive_failures:0
aof_last_write_status
aof_last_cow_size:0
module_fork_in_progress:0
module_fork_last_cow_size:0
(log)

# Stats
total_connections_received
total_commands_processed
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
(master)
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

// infoLines are the parts of INFO whose number of lines varies.
var infoLines = map[string]func(e *Engine, w *strings.Builder){
	"(errors)": infoErrors, "(keyspace)": infoKeyspace, "(log)": infoLog, "(master)": infoMaster, "(replicas)": infoReplicas,
}

// uptime is the number of seconds since the engine first ran a command or a Tick.
func (e *Engine) uptime() int64 {
	if e.began == 0 {
		return 0
	}
	return max(e.now-e.began, 0) / 1e6
}

// mode is the value of redis_mode.
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

// sampleDeadlines calls do with the deadlines of d, or with a thousand random ones if there are more.
func (e *Engine) sampleDeadlines(d *db, do func(ms int64)) {
	for range min(d.deadlines.Len(), 1000) {
		if id, ok := d.deadlines.Sample(e.draw()); ok {
			do(d.deadlines.Deadline(id))
		}
	}
}

// stalePercent is the share of keys with a deadline that are dead but not yet reaped.
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
