package engine

import (
	"fmt"
	"strings"
	"testing"
)

func TestHashesBecomeTablesAtTheLimits(t *testing.T) {
	s := newStage(Options{})
	for i := range 512 {
		s.do("", "HSET", "h", fmt.Sprint("f", i), "v")
		s.do("", "HINCRBY", "n", fmt.Sprint("f", i), "1")
	}
	at64, at65 := strings.Repeat("v", 64), strings.Repeat("v", 65)
	for _, step := range [][2]string{
		{"OBJECT ENCODING h", `"listpack"`},
		{"HSET h f0 w", ":0"},
		{"OBJECT ENCODING h", `"listpack"`},
		{"HSET h one more", ":1"},
		{"OBJECT ENCODING h", `"hashtable"`},
		{"HDEL h one f0 f1", ":3"},
		{"OBJECT ENCODING h", `"hashtable"`},
		{"HEXPIRE n 100 FIELDS 1 f0", "[:1]"},
		{"OBJECT ENCODING n", `"listpackex"`},
		{"HINCRBY n one 1", ":1"},
		{"OBJECT ENCODING n", `"hashtable"`},
		{"HTTL n FIELDS 2 f0 f1", "[:100, :-1]"},
		{"HSET v f " + at64, ":1"},
		{"OBJECT ENCODING v", `"listpack"`},
		{"HSETNX v g " + at65, ":1"},
		{"OBJECT ENCODING v", `"hashtable"`},
		{"HSET w " + at65 + " 1", ":1"},
		{"OBJECT ENCODING w", `"hashtable"`},
	} {
		if got := s.line(step[0]); got != step[1] {
			t.Errorf("%s: got %s, want %s", step[0], got, step[1])
		}
	}
}

func TestASmallHashWithDeadlinesIsInTheirOrder(t *testing.T) {
	play(t, Options{}, `
		HSET h a 1 b 2 c 3 d 4                 :4
		HKEYS h                                ["a", "b", "c", "d"]
		HEXPIRE h 200 FIELDS 1 c               [:1]
		HEXPIRE h 100 FIELDS 1 d               [:1]
		HKEYS h                                ["d", "c", "a", "b"]
		HEXPIRE h 200 FIELDS 1 b               [:1]
		HKEYS h                                ["d", "b", "c", "a"]
		HSET h d 5                             :0
		HKEYS h                                ["b", "c", "a", "d"]
		HINCRBY h b 1                          :3
		HGETALL h                              ["b", "3", "c", "3", "a", "1", "d", "5"]
	`)
}

func TestRandomFieldsAtTheEndsOfTheRange(t *testing.T) {
	play(t, Options{}, `
		HRANDFIELD none -9223372036854775807    []
		HSET h f v                              :1
		HRANDFIELD h -9223372036854775808       -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
		HRANDFIELD h -4611686018427387904 WITHVALUES    -ERR value is out of range
		HRANDFIELD h 9223372036854775807        ["f"]
		HRANDFIELD h -2 WITHVALUES              ["f", "v", "f", "v"]
		HRANDFIELD h 1 FOO                      -ERR syntax error
		HRANDFIELD h x FOO                      -ERR value is not an integer or out of range
		HELLO 3                                 {"server", "redis", "version", "8.0.2", "proto", :3, "id", :1, "mode", "standalone", "role", "master", "modules", []}
		HRANDFIELD h 3 WITHVALUES               [["f", "v"]]
		HRANDFIELD none                         null
	`)
}

func TestRandomFieldsAreFair(t *testing.T) {
	for _, size := range []int{40, 400} {
		s := newStage(Options{})
		for i := range size {
			s.do("", "HSET", "h", fmt.Sprint(i), "v")
		}
		seen := map[string]int{}
		const draws = 500
		for range draws {
			for _, f := range strings.Split(strings.Trim(s.do("", "HRANDFIELD", "h", "20"), "[]"), ", ") {
				seen[f]++
			}
		}
		mean := float64(draws*20) / float64(size)
		for f, n := range seen {
			if d := float64(n) - mean; d*d > 36*mean {
				t.Errorf("%d fields: %s came %d times, expected about %g", size, f, n, mean)
			}
		}
		if len(seen) != size {
			t.Errorf("%d of %d fields came", len(seen), size)
		}
	}
}

func TestScanningAHashMeetsEveryFieldOnce(t *testing.T) {
	s := newStage(Options{})
	for i := range 1000 {
		s.do("", "HSET", "h", fmt.Sprint("f", i), "v")
	}
	seen, cursor := map[string]int{}, "0"
	for round := 0; ; round++ {
		reply := strings.FieldsFunc(s.do("", "HSCAN", "h", cursor, "NOVALUES"), func(r rune) bool { return strings.ContainsRune(`[]", `, r) })
		for _, f := range reply[1:] {
			seen[f]++
		}
		s.do("", "HSET", "h", fmt.Sprint("new", round), "v")
		s.do("", "HDEL", "h", fmt.Sprint("new", round/2))
		if cursor = reply[0]; cursor == "0" {
			break
		}
	}
	for i := range 1000 {
		if f := fmt.Sprint("f", i); seen[f] != 1 {
			t.Errorf("%s was met %d times", f, seen[f])
		}
	}
}

func TestCommonHashCommandsDoNotAllocate(t *testing.T) {
	run := runner()
	for i := range 1000 {
		run(fmt.Sprintf("HSET large f%d value", i))()
		run(fmt.Sprintf("HSET small f%d value", i%50))()
	}
	run("HPEXPIRE large 100000 FIELDS 1 f1")()
	for _, line := range []string{
		"HSET small f7 other", "HSET large f7 other", "HGET small f49", "HGET large f900", "HINCRBY small n 1", "HINCRBY large n 1",
		"HEXISTS small f1", "HLEN large", "HPTTL large FIELDS 1 f1", "HPEXPIRE large 200000 FIELDS 1 f1",
	} {
		run(line)()
		if got := testing.AllocsPerRun(1000, run(line)); got > 0 {
			t.Errorf("%s: %g allocations", line, got)
		}
	}
}
