package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/rdb"
)

// kept are values in every form, each made by commands on the key k, with a command that shows all of it.
func kept() []struct {
	name, show string
	make       []string
} {
	many := func(command string, n int, element func(i int) string) string {
		var b strings.Builder
		b.WriteString(command)
		for i := range n {
			b.WriteString(" " + element(i))
		}
		return b.String()
	}
	pair := func(i int) string { return fmt.Sprintf("f%d %d", i, i*i) }
	scored := func(i int) string { return fmt.Sprintf("%d.5 m%d", i, i) }
	return []struct {
		name, show string
		make       []string
	}{
		{"number", "GET k", []string{"SET k 10"}},
		{"negative number", "GET k", []string{"SET k -70000"}},
		{"large number", "GET k", []string{"SET k 9223372036854775807"}},
		{"short string", "GET k", []string{"SET k hello"}},
		{"empty string", "GET k", []string{`SET k ""`}},
		{"string that packs well", "GET k", []string{"SET k " + strings.Repeat("abcabcabd", 300)}},
		{"string of zeros", "GET k", []string{"SETRANGE k 20000 x"}},
		{"intset", "SMEMBERS k", []string{"SADD k 3 1 2 70000 -5"}},
		{"wide intset", "SMEMBERS k", []string{"SADD k 3 9223372036854775807"}},
		{"small set", "SMEMBERS k", []string{"SADD k a b 1"}},
		{"large set", "SMEMBERS k", []string{many("SADD k", 300, func(i int) string { return "m" + strconv.Itoa(i) })}},
		{"small zset", "ZRANGE k 0 -1 WITHSCORES", []string{"ZADD k 1 a 2.5 b -inf c"}},
		{"large zset", "ZRANGE k 0 -1 WITHSCORES", []string{many("ZADD k", 200, scored)}},
		{"small hash", "HGETALL k", []string{"HSET k f v g 12 h -1 i 128 j 5000 l 40000 m 9000000 n 3000000000 o 70368744177664"}},
		{"large hash", "HGETALL k", []string{many("HSET k", 300, pair)}},
		{"long field", "HGETALL k", []string{"HSET k f " + strings.Repeat("v", 100)}},
		{"small hash with deadlines", "HGETALL k", []string{"HSET k f v g w", "HPEXPIREAT k 33177117420123 FIELDS 1 g"}},
		{"large hash with deadlines", "HGETALL k", []string{many("HSET k", 300, pair), "HPEXPIREAT k 33177117420123 FIELDS 2 f7 f8", "HPEXPIREAT k 33177117420100 FIELDS 1 f9"}},
		{"small list", "LRANGE k 0 -1", []string{"RPUSH k a 2 c 300"}},
		{"large list", "LRANGE k 0 -1", []string{many("RPUSH k", 5000, strconv.Itoa)}},
		{"list of long elements", "LRANGE k 0 -1", []string{"RPUSH k a " + strings.Repeat("v", 20000) + " b"}},
	}
}

// Each server accepts the other's payloads, and its own. A form that was small when it was dumped stays small, and keeps its order, unless it
// has too many elements now: Redis measures none of them. The payloads are those of Redis 8.0.2.
func TestRestoredFormsAreThoseOfThePayload(t *testing.T) {
	for _, c := range []struct{ what, payload, ask, want string }{
		{"a small set whose one member is a number", "\x14\t\t\x00\x00\x00\x01\x00\x01\x01\xff\x0c\x00j,\xf2\xc1\xab\xc4&)", "OBJECT ENCODING k", `"listpack"`},
		{"a small sorted set with a member that would be too long now",
			"\x11\x16\x16\x00\x00\x00\x02\x00\x8blong-member\x0c\x01\x01\xff\x0c\x00\xafo\x85R\xdf@R\xd0", "OBJECT ENCODING k", `"listpack"`},
		{"fields with one deadline",
			"\x19\xe0iL\xa6,\x1e\x00\x00\xc3 %\x18%\x00\x00\x00\x06\x00\x81g\x02\x02\x01\xf4\xe0iL\xa6,\x1e\x00\x00\t\x81f\x02\x01\xe0\x01\x0e\x01\t\xff\x0c\x00\x8e\x1a\xae\xfb\xde\xf3\xc4H",
			"HKEYS k", `["g", "f"]`},
	} {
		s := newStage(Options{})
		s.limits.ZSetMaxListpackValue = 4
		if got := s.do("", "RESTORE", "k", "0", c.payload); got != "+OK" {
			t.Errorf("%s: RESTORE: %s", c.what, got)
		}
		if got := s.line(c.ask); got != c.want {
			t.Errorf("%s: %s: %s, want %s", c.what, c.ask, got, c.want)
		}
	}
}

func TestPayloadsAreRedis(t *testing.T) {
	real := newRealTarget(t, realServer(t))
	defer real.close()
	for _, k := range kept() {
		ours := newStage(Options{})
		if commands[strings.ToLower(strings.Fields(k.make[0])[0])] == nil {
			t.Logf("waiting: %s", k.name)
			continue
		}
		real.do("", "FLUSHALL")
		for _, line := range k.make {
			ours.do("", words(line)...)
			real.do("", words(line)...)
		}
		for _, from := range []target{ours, real} {
			payload, err := strconv.Unquote(from.do("", "DUMP", "k"))
			if err != nil {
				t.Fatal(err)
			}
			for _, to := range []target{ours, real} {
				if got := to.do("", "RESTORE", "copy", "0", payload, "REPLACE"); got != "+OK" {
					t.Errorf("%s, %s to %s: %s", k.name, from.name(), to.name(), got)
					continue
				}
				for _, show := range []string{k.show, "OBJECT ENCODING k", "HPEXPIRETIME k FIELDS 5 f f7 f8 f9 g"} {
					want := to.do("", words(show)...)
					got := to.do("", words(strings.Replace(show, " k", " copy", 1))...)
					if sorted(got) != sorted(want) {
						t.Errorf("%s, %s to %s: %s\n got %.300s\nwant %.300s", k.name, from.name(), to.name(), show, got, want)
					}
				}
			}
		}
	}
}

// sorted makes replies in random order comparable.
func sorted(reply string) string {
	parts := strings.Split(strings.Trim(reply, "[]"), ", ")
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func FuzzRestore(f *testing.F) {
	s := newStage(Options{})
	for _, k := range kept() {
		if commands[strings.ToLower(strings.Fields(k.make[0])[0])] == nil {
			continue
		}
		s.do("", "DEL", "k")
		for _, line := range k.make {
			s.do("", words(line)...)
		}
		payload, _ := strconv.Unquote(s.do("", "DUMP", "k"))
		if len(payload) < 4000 {
			f.Add([]byte(payload[:len(payload)-10]))
		}
	}
	f.Add([]byte("\x10\x18\x18\x00\x00\x00\x04\x00\x81f\x02\x81v\x02\x81g\x02\xc1\xf4\x03\xff")) // a listpack
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newStage(Options{})
		payload := string(rdb.Seal(slices.Clip(b)))
		switch reply := s.do("", "RESTORE", "k", "0", payload); reply {
		case "-ERR Bad data format":
			return
		case "+OK":
		default:
			t.Fatal(reply)
		}
		again, _ := strconv.Unquote(s.do("", "DUMP", "k")) // what was accepted can be dumped
		if reply := s.do("", "RESTORE", "copy", "0", again); reply != "+OK" {
			t.Fatalf("%q restored, but its dump %q: %s", payload, again, reply)
		}
	})
}
