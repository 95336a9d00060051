package histories

import (
	"fmt"
	"testing"
)

// The judge itself: histories that are right, and each with one read that is not.
func TestTheContract(t *testing.T) {
	for name, c := range map[string]struct {
		ops  []op
		want int // reads that are broken
	}{
		"nothing was deleted":                  {[]op{{0, read, 1, 2, false, 1, false}, {1, read, 3, 4, false, 1, false}}, 0},
		"the read began before Delete ended":   {[]op{{0, remove, 1, 4, false, 2, false}, {1, read, 3, 5, false, 1, false}}, 0},
		"the read began after":                 {[]op{{0, remove, 1, 2, false, 2, false}, {1, read, 3, 4, false, 1, false}}, 1},
		"it got what is newer":                 {[]op{{0, remove, 1, 2, false, 2, false}, {1, read, 3, 4, false, 3, false}}, 0},
		"a read that failed got nothing":       {[]op{{0, remove, 1, 2, false, 2, false}, {1, read, 3, 4, true, 0, false}}, 0},
		"Delete failed, another process":       {[]op{{0, remove, 1, 2, true, 2, false}, {1, read, 3, 4, false, 1, false}}, 0},
		"Delete failed, the same process":      {[]op{{0, remove, 1, 2, true, 2, false}, {0, read, 3, 4, false, 1, false}}, 1},
		"an older Delete ended later":          {[]op{{0, remove, 1, 6, false, 1, false}, {1, remove, 2, 3, false, 3, false}, {2, read, 7, 8, false, 2, false}}, 1},
		"Set, then what was before":            {[]op{{0, set, 1, 2, false, 3, false}, {1, read, 3, 4, false, 2, false}}, 1},
		"Set failed, and came after a Delete":  {[]op{{0, set, 1, 2, true, 2, false}, {0, remove, 3, 4, false, 3, false}, {1, read, 5, 6, false, 2, false}}, 0},
		"Set failed, and another version came": {[]op{{0, set, 1, 2, true, 2, false}, {0, remove, 3, 4, false, 4, false}, {1, read, 5, 6, false, 3, false}}, 1},
		"before Set began":                     {[]op{{0, remove, 1, 2, false, 4, false}, {1, read, 3, 4, false, 2, false}, {0, set, 5, 6, true, 2, false}}, 1},
		"nothing, as in the database":          {[]op{{0, remove, 1, 2, false, 3, false}, {1, read, 3, 4, false, 3, true}}, 0},
		"nothing, which was over":              {[]op{{0, remove, 1, 2, false, 4, false}, {1, read, 3, 4, false, 5, true}}, 1},
		"what the database never had":          {[]op{{1, read, 1, 2, false, 6, false}}, 1},
	} {
		h := history{ops: c.ops}
		if wrong, _ := h.broken(5, andInItsProcess); len(wrong) != c.want {
			t.Errorf("%s: %d reads are said to be broken, want %d: %s", name, len(wrong), c.want, fmt.Sprint(wrong))
		}
	}
	h := history{ops: []op{{0, remove, 1, 2, true, 2, false}, {0, read, 3, 4, false, 1, false}}}
	if wrong, _ := h.broken(5, everywhere); len(wrong) > 0 {
		t.Errorf("a write that failed counts where it does not: %s", wrong)
	}
	h = history{ops: []op{{0, remove, 1, 2, false, 2, false}, {1, read, 3, 4, false, 1, false}, {0, read, 3, 4, false, 1, false}}}
	if wrong, _ := h.broken(5, inItsProcess); len(wrong) != 1 {
		t.Errorf("a write of one process, and each has copies: %s", wrong)
	}
}
