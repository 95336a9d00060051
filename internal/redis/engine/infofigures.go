package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/metrics"
)

// counting is the engine, with the figures that one INFO computes only once.
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

// percent formats a share as INFO does.
func percent(part, whole int64) string {
	return fmt.Sprintf("%.2f%%", 100*float64(part)/float64(max(whole, 1)))
}

// infoFigures are the fields of INFO that are computed.
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
	"master_repl_offset":             func(n *counting) any { return n.streamOffset() },
	"repl_backlog_active":            func(n *counting) any { return oneIf(n.feed.on) },
	"repl_backlog_first_byte_offset": func(n *counting) any { return n.feed.offset - int64(len(n.feed.backlog)) + int64(oneIf(n.feed.on)) },
	"repl_backlog_histlen":           func(n *counting) any { return len(n.feed.backlog) },

	"cluster_enabled": func(n *counting) any { return oneIf(n.options.Cluster != nil) },
}
