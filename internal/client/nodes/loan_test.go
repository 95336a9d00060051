package nodes_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/redistest"
)

// An answer is lent if it fits into the buffer that its reader expects, and is a copy of the reader's own if not. It is correct either way.
func TestBorrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		a := ask(t, srv, 2)
		n, err := a.Of(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			length, expected int
			lent             bool
		}{
			{10, 10, true}, {0, 10, true}, {4000, 4000, true}, {4000, 3900, true}, {4096, 3200, true}, {4097, 3200, false}, {40_000, 10, false},
			{49_152, 49_152, true}, {60_000, 60_000, false}, {1 << 20, 1 << 20, false}, {10, 1 << 20, false},
		} {
			for range 3 { // with new memory, and with memory that was given back
				want := bytes.Repeat([]byte{'a' + byte(c.length%26)}, c.length)
				srv.Set("k", string(want))
				got := n.Borrow(t.Context(), "k", c.expected)
				if got.Err != nil || !got.Found || !bytes.Equal(got.Raw, want) || (got.Loan != nil) != c.lent {
					t.Errorf("%+v: %d bytes, loan %v, %v", c, len(got.Raw), got.Loan != nil, got.Err)
				}
				if got.Loan != nil {
					got.Loan.GiveBack()
				}
			}
		}
		if got := n.Borrow(t.Context(), "absent", 100); got.Found || got.Loan != nil || got.Err != nil {
			t.Errorf("absent: %+v", got)
		}
		srv.HSet("hash", "f", "v")
		if got := n.Borrow(t.Context(), "hash", 100); !redis.HasErrorPrefix(got.Err, "WRONGTYPE") || got.Loan != nil {
			t.Errorf("of another type: %+v", got)
		}
		if a.opened.Load() > 0 {
			t.Error("an answer that did not fit was taken for silence")
		}
	})
}

// Memory that was not given back is not used for another answer.
func TestALoanThatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		n, err := ask(t, srv, 2).Of(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		kept := make([]nodes.Answer, 20)
		for i := range kept {
			srv.Set("k", strings.Repeat(string(rune('a'+i)), 5000))
			if kept[i] = n.Borrow(t.Context(), "k", 5000); i%2 == 1 {
				kept[i].Loan.GiveBack()
			}
		}
		for i := 0; i < len(kept); i += 2 {
			if want := strings.Repeat(string(rune('a'+i)), 5000); string(kept[i].Raw) != want {
				t.Errorf("answer %d became %.10q", i, kept[i].Raw)
			}
		}
	})
}
