package engine

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSetsHaveThreeForms(t *testing.T) {
	play(t, Options{}, `
		SADD s 3 1 2                          :3
		OBJECT ENCODING s                     "intset"
		SMEMBERS s                            ["1", "2", "3"]
		SADD s 01 a 2                         :2
		OBJECT ENCODING s                     "listpack"
		SMEMBERS s                            ["1", "2", "3", "01", "a"]
		SREM s 2 nope                         :1
		SMEMBERS s                            ["1", "3", "01", "a"]
		SADD s 12345678901234567890123456789012345678901234567890123456789012345  :1
		OBJECT ENCODING s                     "hashtable"
		SCARD s                               :5
		SMISMEMBER s 1 2 01 a                 [:1, :0, :1, :1]
		SREM s 1 3 01 a 12345678901234567890123456789012345678901234567890123456789012345  :5
		EXISTS s                              :0
		SADD t x y                            :2
		OBJECT ENCODING t                     "listpack"
	`)
}

// The forms change where Redis's do: at 512 integers, 128 other members, or that many arguments at once.
func TestSetsChangeFormAtRedisThresholds(t *testing.T) {
	for _, c := range []struct {
		name string
		add  []string // one SADD each
		want string
	}{
		{"512 integers", numbered("", 512, 1), "intset"},
		{"513 integers", numbered("", 513, 1), "hashtable"},
		{"513 integers at once", numbered("", 513, 513), "hashtable"},
		{"128 names", numbered("n", 128, 1), "listpack"},
		{"129 names", numbered("n", 129, 1), "hashtable"},
		{"129 names at once", numbered("n", 129, 129), "hashtable"},
		{"129 times one name at once", []string{"n" + strings.Repeat(" n", 128)}, "hashtable"},
		{"127 integers and a name", append(numbered("", 127, 1), "n"), "listpack"},
		{"128 integers and a name", append(numbered("", 128, 1), "n"), "hashtable"},
		{"129 integers at once are still integers", numbered("", 129, 129), "intset"},
	} {
		s := newStage(Options{})
		for _, members := range c.add {
			s.do("", append([]string{"SADD", "s"}, strings.Fields(members)...)...)
		}
		if got := s.do("", "OBJECT", "ENCODING", "s"); got != strconv.Quote(c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// numbered returns n members, grouped into lines of each members.
func numbered(prefix string, n, each int) (lines []string) {
	for i := 0; i < n; i += each {
		var line []string
		for k := range each {
			line = append(line, prefix+strconv.Itoa(i+k))
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines
}

func TestSetsOfSetsKeepTheOrderOfTheSmallest(t *testing.T) {
	play(t, Options{}, `
		SADD a c b 1 x                        :4
		SADD b x b c q r                      :5
		SINTER b a                            ["c", "b", "x"]
		SINTERSTORE d b a                     :3
		SMEMBERS d                            ["c", "b", "x"]
		SINTERCARD 2 a b                      :3
		SINTERCARD 2 a b LIMIT 2              :2
		SINTERCARD 2 a b LIMIT 0              :3
		SDIFF a b                             ["1"]
		SDIFFSTORE d a b                      :1
		OBJECT ENCODING d                     "intset"
		SDIFF a b a                           []
		SINTER a none                         []
		SET str v                             +OK
		SINTER none str                       -WRONGTYPE Operation against a key holding the wrong kind of value
		SUNIONSTORE d a b                     :6
		SMEMBERS d                            ["c", "b", "1", "x", "q", "r"]
	`)
}

func TestStoringASetReplacesWhatWasThere(t *testing.T) {
	play(t, Options{}, `
		SADD s a b                            :2
		SET d v EX 100                        +OK
		SUNIONSTORE d s                       :2
		TTL d                                 :-1
		EXPIRE d 100                          :1
		SINTERSTORE d s none                  :0
		EXISTS d                              :0
		SDIFFSTORE s s none                   :2
		SADD gone x                           :1
		PEXPIRE gone 10                       :1
		@sleep 11
		SUNIONSTORE gone none                 :0
		SMOVE s s a                           :1
		SMOVE s t a                           :1
		SMOVE s t b                           :1
		EXISTS s                              :0
	`)
}

func TestSpopRecordsWhatItTook(t *testing.T) {
	var got effects
	s := newStage(Options{})
	s.SetSink(&got)
	s.do("", "SADD", "s", "a", "b", "c")
	got = nil
	s.do("", "SPOP", "s", "2")
	var left []string
	s.dbs[0].find([]byte("s")).coll.(interface{ Each(func(string) bool) }).Each(func(m string) bool {
		left = append(left, m)
		return true
	})
	if len(got) != 1 || !strings.HasPrefix(got[0], "SREM s ") || len(left) != 1 || strings.Contains(got[0][7:], left[0]) {
		t.Errorf("recorded %q, left %q", got, left)
	}
	got = nil
	s.do("", "SPOP", "s")
	if !slices.Equal(got, effects{"DEL s"}) {
		t.Errorf("recorded %q when the last member went", got)
	}
}

func TestCountsNearTheEndOfTheNumbers(t *testing.T) {
	play(t, Options{}, `
		SRANDMEMBER none -9223372036854775807             []
		SRANDMEMBER none -9223372036854775808             -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
		ZRANDMEMBER none -9223372036854775807             []
		ZRANDMEMBER none -9223372036854775807 WITHSCORES  -ERR value is out of range
		ZRANDMEMBER none -9223372036854775808             -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
		SADD s a                                          :1
		ZADD z 1 a                                        :1
		SRANDMEMBER s -9223372036854775808                -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
		SRANDMEMBER s -9223372036854775807                -ERR value is out of range
		ZRANDMEMBER z -9223372036854775807                -ERR value is out of range
		ZRANDMEMBER z -4611686018427387904 WITHSCORES     -ERR value is out of range
		SRANDMEMBER s 9223372036854775807                 ["a"]
		ZRANDMEMBER z 4611686018427387903 WITHSCORES      ["a", "1"]
		SRANDMEMBER s -3                                  ["a", "a", "a"]
		ZRANDMEMBER z -2 WITHSCORES                       ["a", "1", "a", "1"]
		SPOP s 9223372036854775807                        ["a"]
		SPOP s 9223372036854775808                        -ERR value is out of range, must be positive
	`)
}

// A member that stays during a whole scan is returned exactly once, while others come and go.
func TestSscanMeetsEveryMemberThatStaysOnce(t *testing.T) {
	s := newStage(Options{})
	stays := numbered("stays", 1000, 1)
	for i, m := range stays {
		s.do("", "SADD", "s", m, "goes"+strconv.Itoa(i))
	}
	met := map[string]int{}
	cursor, turn := "0", 0
	for {
		reply := s.do("", "SSCAN", "s", cursor, "COUNT", "7")
		parts := strings.Split(strings.Trim(reply, "[]"), ", ")
		for _, m := range parts[1:] {
			met[strings.Trim(m, `"[]`)]++
		}
		if cursor = strings.Trim(parts[0], `"`); cursor == "0" {
			break
		}
		s.do("", "SREM", "s", "goes"+strconv.Itoa(turn), "goes"+strconv.Itoa(999-turn))
		s.do("", "SADD", "s", "comes"+strconv.Itoa(turn))
		turn++
	}
	for _, m := range stays {
		if met[m] != 1 {
			t.Fatalf("%s was met %d times", m, met[m])
		}
	}
}
