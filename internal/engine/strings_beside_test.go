package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/resp"
)

func TestStringsBesideRedis(t *testing.T) {
	newBeside(t, false).play(t, rand.Uint64(), besideCommands(), drawStrings)
}

func TestBitsBesideRedis(t *testing.T) {
	newBeside(t, false).play(t, rand.Uint64(), besideCommands(), drawBits)
}

func TestKeysBesideRedis(t *testing.T) {
	b := newBeside(t, false)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	b.both(t, 2, "FLUSHALL")
	b.events(t)
	var trail []string
	for range besideCommands() {
		args, proto := drawKeys(r), 2+r.IntN(2)
		if args[0] == "RANDOMKEY" { // whether it meets a dead key, and removes it, is chance
			b.both(t, proto, "EXISTS", "k0", "k1", "k2", "k3", "k4")
			b.events(t)
		}
		got, want := b.both(t, proto, args...)
		gotEvents, wantEvents := b.events(t)
		trail = append(trail, fmt.Sprintf("%.60q", args))
		if !sameKeys(args, got, want) || !slices.Equal(gotEvents, wantEvents) {
			t.Fatalf("seed %d, RESP%d, after\n%s\n got %.300s %.300v\nwant %.300s %.300v", seed, proto, strings.Join(trail[max(0, len(trail)-25):], "\n"),
				notation(got), gotEvents, notation(want), wantEvents)
		}
		if slices.Contains(args, "1") {
			<-time.After(3 * time.Millisecond) // a deadline of 1 ms is over
		}
		b.compareEncodings(t, args, trail)
		b.events(t) // of what that removed
	}
}

// sameKeys is sameReply, with tolerance for the order of keys and for chance.
func sameKeys(args []string, got, want resp.Value) bool {
	switch strings.ToUpper(args[0]) {
	case "KEYS", "SCAN":
		return slices.Equal(flat(got), flat(want))
	case "OBJECT":
		return notation(got) == notation(want) || slices.Contains(args, "IDLETIME") && replyShape(got) == replyShape(want)
	case "RANDOMKEY":
		return replyShape(got) == replyShape(want)
	}
	return sameReply(args, got, want, false)
}

// Transactions of two sessions against each other. Replies only.
func TestTransactionsBesideRedis(t *testing.T) {
	b := newBeside(t, false)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	b.both(t, 2, "FLUSHALL")
	var trail []string
	proto := 2
	for range besideCommands() {
		if r.IntN(4) == 0 {
			proto = 5 - proto
		}
		args := drawTransactions(r)
		switch args[0] {
		case "KEYS", "SCAN", "RANDOMKEY", "OBJECT":
			continue
		case "RESET": // it would end RESP3
			proto = 2
		case "SET", "PEXPIRE":
			if slices.Contains(args, "1") { // the clocks are not the same to the millisecond
				continue
			}
		}
		got, want := b.both(t, proto, args...)
		trail = append(trail, fmt.Sprintf("RESP%d %.60q", proto, args))
		if !sameTransaction(notation(got), notation(want)) {
			t.Fatalf("seed %d, after\n%s\n got %.300s\nwant %.300s", seed, strings.Join(trail[max(0, len(trail)-40):], "\n"), notation(got), notation(want))
		}
	}
}

// sameTransaction compares two replies but for the numbers that are times.
func sameTransaction(got, want string) bool {
	a, b := strings.Split(got, ", "), strings.Split(want, ", ")
	return len(a) == len(b) && slices.EqualFunc(a, b, func(x, y string) bool {
		return near(strings.Trim(x, "[]"), strings.Trim(y, "[]"))
	})
}
