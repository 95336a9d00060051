package engine

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// recorder keeps the commands of a Stream, but for SELECT.
type recorder struct{ said []string }

func (r *recorder) stream() *Stream { return &Stream{Write: r.write} }

func (r *recorder) write(unit []byte) {
	var p resp.Parser
	in := bytes.NewReader(unit)
	for {
		args, err := p.Next()
		if err != nil {
			panic(err)
		}
		if args == nil {
			if n, _ := p.Fill(in); n == 0 {
				return
			}
			continue
		}
		if string(args[0]) != "SELECT" {
			r.said = append(r.said, string(bytes.Join(args, []byte(" "))))
		}
	}
}

// The effects of commands, as Redis sends them to a replica: rules P of the table.
func TestEffectsAreThoseThatRedisSends(t *testing.T) {
	for _, r := range readRules(t) {
		if r.id[0] != 'P' || later[r.id] != "" {
			continue
		}
		sink := &recorder{}
		s := newStage(Options{})
		var dump string
		for i, step := range r.steps {
			got, want := "-", step.want
			switch step.command {
			case "@repl":
				s.SetSink(sink.stream())
				continue
			case "@stream":
				s.Tick(s.now)
				got = relative(strings.Join(sink.said, " ; "), s.now/1000)
				want = relative(want, s.now/1000)
			default:
				got, want = playStep(s, step, &dump)
			}
			if !agree(got, want) {
				t.Errorf("%s %s, step %d: %s\n got %s\nwant %s", r.id, r.title, i+1, step.command, got, want)
				break
			}
		}
	}
}

// later are the rules P that wait for something.
var later = map[string]string{
	"P10": "its stream was not measured",
}

var (
	stamp    = regexp.MustCompile(`<now([+-][0-9]+)ms>`)
	decimals = regexp.MustCompile(`[0-9]{13}\b`)
)

// relative replaces times near now, in unix milliseconds, by their distance in seconds, rounded down, since the table was made a moment later.
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
