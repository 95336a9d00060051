package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// propagated formats the commands of a stream to a replica as the rules do: without SELECT and PING, and binary arguments by name.
func propagated(next func() (resp.Value, error)) string {
	var said []string
	for {
		v, err := next()
		if err != nil {
			return strings.Join(said, " ; ")
		}
		var line []string
		for _, arg := range v.List {
			text := arg.Text
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
				text = "<bin>"
			}
			line = append(line, text)
		}
		if len(line) > 0 && line[0] != "SELECT" && line[0] != "PING" {
			said = append(said, strings.Join(line, " "))
		}
	}
}

// snapshotOf reads the answer to SYNC, a file preceded by its length, and returns the file and the rest.
func snapshotOf(answer string) (file, rest string, err error) {
	answer = strings.TrimLeft(answer, "\n")
	head, rest, ok := strings.Cut(answer, "\r\n")
	n, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
	if !ok || err != nil || n > len(rest) {
		return "", "", fmt.Errorf("%.40q begins no snapshot", answer)
	}
	return rest[:n], rest[n:], nil
}

var (
	stamp    = regexp.MustCompile(`<now([+-][0-9]+)ms>`)
	decimals = regexp.MustCompile(`[0-9]{13}\b`)
)

// relative replaces times near now, in unix milliseconds, by their distance in seconds, rounded down because a little time has passed since.
func relative(stream string, now int64) string {
	stream = stamp.ReplaceAllStringFunc(stream, func(m string) string {
		ms, _ := strconv.ParseInt(stamp.FindStringSubmatch(m)[1], 10, 64)
		return inSeconds(ms)
	})
	return decimals.ReplaceAllStringFunc(stream, func(m string) string {
		ms, _ := strconv.ParseInt(m, 10, 64)
		if d := ms - now; -1e6 < d && d < 1e6 {
			return inSeconds(d)
		}
		return m
	})
}

func inSeconds(ms int64) string {
	s := ms / 1000
	if ms < 0 && ms%1000 != 0 {
		s--
	}
	return "<" + strconv.FormatInt(s, 10) + "s>"
}
