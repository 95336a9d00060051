package engine

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

// section returns one section of INFO as its lines.
func (s *stage) section(name string) string {
	return strings.NewReplacer(`\r\n`, "\n", `"`, "").Replace(s.line("INFO " + name))
}

func TestInfoFiguresAreCounted(t *testing.T) {
	s := newStage(Options{})
	s.expect(t,
		"SET a 1", "+OK", "SET b 1 PX 50", "+OK", "SET c 1 EX 100", "+OK", "GET a", `"1"`, "GET nokey", "(nil)",
		"@ca HELLO 3", "", "@ca CLIENT TRACKING ON", "+OK", "@ca MGET a b c", `["1", "1", "1"]`,
		"@cb SUBSCRIBE news", `["subscribe", "news", :1]`, "@cc WATCH a", "+OK",
		"SELECT 5", "+OK", "SET d 1", "+OK", "BAD", "-ERR unknown command 'BAD', with args beginning with:", "GET", "-ERR wrong number of arguments for 'get' command",
		"@sleep 100", "",
	)
	for section, lines := range map[string][]string{
		"clients":    {"tracking_clients:1", "pubsub_clients:1", "watching_clients:1", "total_watched_keys:1", "blocked_clients:0"},
		"stats":      {"expired_keys:1", "keyspace_hits:4", "keyspace_misses:1", "tracking_total_keys:2", "tracking_total_items:2", "pubsub_channels:1", "total_error_replies:2", "expired_stale_perc:0.00"},
		"errorstats": {"errorstat_ERR:count=2"},
		"keyspace":   {"db0:keys=2,expires=1,avg_ttl=99900,subexpiry=0", "db5:keys=1,expires=0,avg_ttl=0,subexpiry=0"},
		"server":     {"redis_version:8.0.2", "redis_mode:standalone"},
	} {
		text := s.section(section)
		for _, want := range lines {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("INFO %s lacks %s:\n%s", section, want, text)
			}
		}
	}
	if id := regexp.MustCompile(`run_id:[0-9a-f]{40}\n`); !id.MatchString(s.section("server")) || id.FindString(s.section("server")) == id.FindString(newStage(Options{Seed: 7}).section("server")) {
		t.Errorf("INFO server has no run_id of its own:\n%s", s.section("server"))
	}
	if text := s.section("nosuch"); text != "" {
		t.Errorf("INFO nosuch: %q", text)
	}
	s.expect(t, "CONFIG RESETSTAT", "+OK")
	if text := s.section("stats"); !strings.Contains(text, "expired_keys:0\n") {
		t.Errorf("after CONFIG RESETSTAT:\n%s", text)
	}
}

func TestStalePercent(t *testing.T) {
	s := newStage(Options{})
	s.expect(t, "DEBUG SET-ACTIVE-EXPIRE 0", "+OK", "SET a 1 PX 10", "+OK", "SET b 1 PX 10", "+OK", "@sleep 50", "")
	if text := s.section("stats"); !strings.Contains(text, "expired_stale_perc:100.00\n") {
		t.Errorf("two of two keys are dead:\n%s", text)
	}
}

// notInInfo are the fields of Redis 8's INFO that this engine cannot give truthfully: how Redis was built, its threads and its event loop,
// and what would have to be measured all the time.
var notInInfo = regexp.MustCompile(`^(redis_build_id|monotonic_clock|multiplexing_api|atomicvar_api|gcc_version|executable|listener\d+|client_recent_|total_system_memory|` +
	`used_memory_(lua|vm)|allocator_(frag|rss)|rss_overhead|mem_clients_normal|io_thread_|total_net_(repl|input|output)|aof_rewrites$|instantaneous_|expire_cycle_cpu|` +
	`total_(reads|writes)_processed|client_(query|output)_buffer|reply_buffer|eventloop_|used_cpu_|module$|errorstat_|db0)`)

// Every other field of a newly started Redis 8 is here, in the same order and form.
func TestInfoHasRedisFields(t *testing.T) {
	r := newRealTarget(t, realServer(t))
	defer r.close()
	fields := func(reply string) (names []string, forms map[string]string) {
		forms = map[string]string{}
		for line := range strings.SplitSeq(strings.NewReplacer(`\r\n`, "\n", `"`, "").Replace(reply), "\n") {
			name, value, _ := strings.Cut(line, ":")
			if line == "" || notInInfo.MatchString(name) || strings.HasPrefix(line, "# CPU") || strings.HasPrefix(line, "# Threads") || strings.HasPrefix(line, "# Keysizes") || name == "server_name" {
				continue
			}
			names = append(names, name)
			forms[name] = regexp.MustCompile(`[\d.]+`).ReplaceAllString(value, "9")
		}
		return names, forms
	}
	got, gotForms := fields(newStage(Options{}).do("", "INFO"))
	want, wantForms := fields(r.do("", "INFO"))
	if d := diff.Of(want, got); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"used_memory_human", "used_memory_peak_perc", "uptime_in_days", "expired_stale_perc", "mem_fragmentation_ratio", "rdb_last_bgsave_status"} {
		if g, w := strings.TrimRight(gotForms[name], "BKMG"), strings.TrimRight(wantForms[name], "BKMG"); g != w || g == "" {
			t.Errorf("%s is like %q, want %q", name, gotForms[name], wantForms[name])
		}
	}
}

// Without replicas, waiting for them ends by the timeout.
func TestWaitingForReplicas(t *testing.T) {
	play(t, Options{}, `
		WAIT 0 0                 :0
		WAIT -1 0                :0
		WAIT a b                 -ERR value is not an integer or out of range
		WAIT 1 b                 -ERR timeout is not an integer or out of range
		WAIT 1 -5                -ERR timeout is negative
		WAIT 1 9223372036854775807    -ERR timeout is out of range
		WAITAOF 0 0 0            [:0, :0]
		WAITAOF 2 0 0            -ERR value is out of range, value must between 0 and 1
		WAITAOF 0 -1 0           -ERR value is out of range, must be positive
		WAITAOF 0 a 0            -ERR value is out of range, must be positive
		WAITAOF 0 1 x            -ERR timeout is not an integer or out of range
		WAITAOF 1 0 0            -ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.
		@c1 WAIT 1 50
		@c2 WAITAOF 0 1 100
		@c3 WAIT 1 0
		@sleep 40
		@out 1
		@sleep 20
		@out 1                   :0
		@out 2
		@sleep 50
		@out 2                   [:0, :0]
		@out 3
		MULTI                    +OK
		WAIT 1 0                 +QUEUED
		EXEC                     [:0]
		EVAL "return redis.call('WAIT', 1, 0)" 0    :0
	`)
}

// Scripts from EVAL are dropped when there are many, the least recently used first; those from SCRIPT LOAD stay.
func TestScriptsAreForgotten(t *testing.T) {
	s := newStage(Options{})
	kept := strings.Trim(s.do("", "SCRIPT", "LOAD", "return 'kept'"), `"`)
	s.do("", "EVAL", "return 'first'", "0")
	s.do("", "EVAL", "return 'used'", "0")
	for i := range maxEvaled + 5 {
		s.do("", "EVAL", fmt.Sprint("return ", i), "0")
		s.do("", "EVAL", "return 'used'", "0")
	}
	sum := func(source string) string {
		digest := sha1.Sum([]byte(source))
		return hex.EncodeToString(digest[:])
	}
	if got := s.do("", "SCRIPT", "EXISTS", kept, sum("return 'first'"), sum("return 'used'"), sum("return 4"), sum("return 504")); got != "[:1, :0, :1, :0, :1]" {
		t.Errorf("got %s", got)
	}
	if n := len(s.scripts.chunks); n != maxEvaled+1 {
		t.Errorf("%d are kept", n)
	}
	if text := s.section("memory"); !strings.Contains(text, "number_of_cached_scripts:501\n") {
		t.Error(text)
	}
}

// COMMAND LIST names subcommands too.
func TestCommandListHasSubcommands(t *testing.T) {
	s := newStage(Options{})
	all := s.do("", "COMMAND", "LIST")
	for _, name := range []string{"get", "config|get", "client|tracking"} {
		if !strings.Contains(all, `"`+name+`"`) {
			t.Errorf("there is no %s", name)
		}
	}
}
