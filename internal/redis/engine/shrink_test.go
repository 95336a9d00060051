package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// shrink removes acts while the servers still differ, and describes the rest: nearly the fewest commands that show the difference.
func (s *scene) shrink(t *testing.T, addr string, first *mismatch) string {
	acts := s.acts[:first.acts]
	m := s.play(t, addr, acts, nil)
	if m == nil {
		return fmt.Sprintf("it did not happen again; the last commands were\n%s%v", s.show(acts[max(0, len(acts)-20):]), first)
	}
	deadline := time.Now().Add(30 * time.Second)
	for size := len(acts) / 2; size > 0; size /= 2 {
		for at := 0; at < len(acts) && time.Now().Before(deadline); {
			fewer := slices.Delete(slices.Clone(acts), at, min(at+size, len(acts)))
			if still := s.play(t, addr, fewer, nil); still != nil {
				acts, m = fewer[:still.acts], still
			} else {
				at += size
			}
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
