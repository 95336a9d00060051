package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

func TestWithoutAPolicyWritesAreRefused(t *testing.T) {
	play(t, Options{}, `
		SET k v                             +OK
		CONFIG SET maxmemory 1              +OK
		SET k w                             -OOM command not allowed when used memory > 'maxmemory'.
		GET k                               "v"
		DEL k                               :1
		MULTI                               +OK
		SET k w                             -OOM command not allowed when used memory > 'maxmemory'.
		EXEC                                -EXECABORT Transaction discarded because of previous errors.
		CONFIG SET maxmemory 0              +OK
		SET k w                             +OK
	`)
}

func TestVolatilePoliciesSpareKeysWithoutADeadline(t *testing.T) {
	for _, policy := range []string{"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		s := newStage(Options{Policy: policy})
		s.expect(t, "SET keep v", "+OK", "SET a v EX 100", "+OK", "CONFIG SET maxmemory 1", "+OK",
			"SET n w", "-OOM command not allowed when used memory > 'maxmemory'.", "EXISTS keep", ":1", "EXISTS a", ":0")
	}
}

// Each policy keeps the keys that it is meant to keep, and the data stay within the limit all the time.
func TestPolicies(t *testing.T) {
	effort.Alone(t)
	const keys, limit = 2000, 200 << 10
	for policy, keeps := range map[string]func(i int) bool{
		"allkeys-lru":  func(i int) bool { return i%10 == 0 }, // read repeatedly below
		"allkeys-lfu":  func(i int) bool { return i%10 == 0 },
		"volatile-ttl": func(i int) bool { return i >= keys/2 }, // the second half lives longer
	} {
		t.Run(policy, func(t *testing.T) {
			s := newStage(Options{MaxMemory: limit, Policy: policy})
			for i := range keys {
				ttl := 10000
				if i >= keys/2 {
					ttl = 20000
				}
				if got := s.line(fmt.Sprintf("SET key:%d %s EX %d", i, strings.Repeat("v", 100), ttl)); got != "+OK" {
					t.Fatal(got)
				}
				if s.weight() > limit+300 { // room is made before a write, so the last write may exceed the limit
					t.Fatalf("%d bytes after %d keys, the limit is %d", s.weight(), i, limit)
				}
				if i%10 == 9 && policy != "volatile-ttl" {
					s.sleep(1000)
					for j := 0; j <= i; j += 10 {
						s.line(fmt.Sprintf("GET key:%d", j))
					}
				}
			}
			var kept, keptOfThose, those int
			for i := range keys {
				there := s.line(fmt.Sprintf("EXISTS key:%d", i)) == ":1"
				if there {
					kept++
				}
				if keeps(i) {
					those++
					if there {
						keptOfThose++
					}
				}
			}
			t.Logf("%d of %d keys kept, %d of the %d that the policy is for", kept, keys, keptOfThose, those)
			if share, all := float64(keptOfThose)/float64(those), float64(kept)/keys; share < min(1.4*all, 0.9) {
				t.Errorf("kept %.2f of all and %.2f of those that the policy is for", all, share)
			}
			if s.stats.evictedKeys == 0 {
				t.Error("nothing was evicted")
			}
		})
	}
}

func TestEvictionIsAnEvent(t *testing.T) {
	s := newStage(Options{Policy: "allkeys-random"})
	s.expect(t, "CONFIG SET notify-keyspace-events Ee", "+OK",
		"@ca PSUBSCRIBE *", `["psubscribe", "*", :1]`,
		"SET k v", "+OK", "CONFIG SET maxmemory 1", "+OK",
		"@out a", `["pmessage", "*", "__keyevent@0__:evicted", "k"]`,
		"DBSIZE", ":0")
}

// The stored weights equal freshly computed ones.
func TestWeights(t *testing.T) {
	s := newStage(Options{MaxMemory: 1 << 30})
	for i := range 200 {
		s.line(fmt.Sprintf("SET key:%d %s", i%50, strings.Repeat("v", i*3)))
		s.line(fmt.Sprintf("APPEND key:%d xyz", i%70))
		s.line(fmt.Sprintf("DEL key:%d", i%13))
	}
	kept := s.weight()
	s.settings.maxMemory = 0
	if anew := s.weight(); kept != anew {
		t.Errorf("kept %d, weighed anew %d", kept, anew)
	}
}
