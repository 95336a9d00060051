package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// shrink leaves out acts as long as the two still differ, and describes what is left: the fewest commands that show it, nearly.
func (s *scene) shrink(t *testing.T, addr string, m *mismatch) string {
	acts := s.acts[:m.acts]
	deadline := time.Now().Add(30 * time.Second)
	again := false
	for size := len(acts); size > 0; size /= 2 {
		for at := 0; at < len(acts) && time.Now().Before(deadline); {
			left := slices.Delete(slices.Clone(acts), at, min(at+size, len(acts)))
			if size == len(acts) && !again { // nothing left out: does it happen again at all?
				left, again = acts, true
			}
			if found := s.play(t, addr, left, nil); found != nil {
				acts, m = left[:found.acts], found
				if len(left) == len(s.acts) {
					break
				}
				continue
			}
			if again && len(left) == len(acts) {
				return fmt.Sprintf("it did not happen again; the last commands were\n%s%v", s.show(acts[max(0, len(acts)-20):]), m)
			}
			at += size
		}
	}
	return s.show(acts[max(0, len(acts)-40):]) + m.Error()
}

func (s *scene) show(acts []act) string {
	var b strings.Builder
	if s.low {
		b.WriteString("  with low limits\n")
	}
	for _, a := range acts {
		fmt.Fprintf(&b, "  RESP%d %.150q\n", a.proto, a.args)
		if a.brief {
			b.WriteString("  (3 ms later)\n")
		}
	}
	return b.String()
}
