package engine

import (
	"strconv"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

func TestHyperLogLogs(t *testing.T) {
	play(t, Options{}, `
		PFADD h                                :1
		PFADD h                                :0
		PFADD h a b c                          :1
		PFADD h a                              :0
		PFCOUNT h                              :3
		STRLEN h                               :27
		EXPIRE h 100                           :1
		PFMERGE h none                         +OK
		TTL h                                  :100
		PFMERGE e                              +OK
		STRLEN e                               :18
		PFCOUNT h e none                       :3
		PFCOUNT none                           :0
		SADD l a                               :1
		PFADD l a                              -WRONGTYPE Operation against a key holding the wrong kind of value
		SET s x                                +OK
		PFCOUNT h s                            -WRONGTYPE Key is not a valid HyperLogLog string value.
		SETRANGE h 16 x                        :27
		PFADD h d                              :1
		PFCOUNT h                              -INVALIDOBJ Corrupted HLL object detected
		PFADD short                            :1
		SETBIT short 136 0                     :1
		PFADD short e f g h i j k l m n o p q r s t u v w x y z ba bb bc bd be bf bg bh bi bj bk bl bm bn bo bp bq br bs bt bu bv bw bx by bz ca cb cc cd ce cf cg ch ci cj ck cl cm cn co cp cq cr cs ct cu cv cw cx cy cz  -INVALIDOBJ Corrupted HLL object detected
		STRLEN short                           :70
	`)
}

// The figures are those of Redis 8.0.2 for the same elements.
func TestHyperLogLogsCountAsRedis(t *testing.T) {
	effort.Alone(t)
	s := newStage(Options{})
	add := []string{"PFADD", "h"}
	for i := range 100_000 {
		if add = append(add, strconv.Itoa(i)); len(add) < 2+100 {
			continue
		}
		s.do("", add...)
		add = add[:2]
		if want := map[int]string{99: ":100", 999: ":1001", 9999: ":9987", 99999: ":99565"}[i]; want != "" {
			if got := s.do("", "PFCOUNT", "h"); got != want {
				t.Errorf("%d elements: %s, want %s", i+1, got, want)
			}
		}
	}
}
