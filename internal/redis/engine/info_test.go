package engine

import (
	"regexp"
	"strings"
	"testing"
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
