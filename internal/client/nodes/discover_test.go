package nodes_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// A cluster whose only node accepts and never answers: callers wait for the budget, all share one reading of the slots, and in the end no
// background work is left.
func TestSlotsOfASilentClusterAreReadOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{l.Addr().String()}, ReadTimeout: 300 * time.Millisecond, MaxRedirects: -1})
	defer rdb.Close()
	var works sync.WaitGroup
	ns := nodes.New(nodes.Options{Redis: rdb, Timeout: 50 * time.Millisecond, Start: func(f func()) bool { works.Go(f); return true }})
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if _, err := ns.Of(t.Context(), "k"); err == nil {
				t.Error("the node of a key was found")
			}
		})
	}
	asking.Wait()
	keys := []string{"a", "b", "c", "d", "e", "f", "g"}
	ns.Each(t.Context(), keys, func(*nodes.Node, []int) { t.Error("a node was found") }, func(i int, err error) { keys[i] = err.Error() })
	for _, why := range keys {
		if why != keys[0] {
			t.Errorf("one key was lost by %s, another by %s", keys[0], why)
		}
	}
	if n := reading(); n > 1 {
		t.Errorf("%d read the slots", n)
	}
	err = ns.Masters(t.Context(), func(context.Context, *nodes.Node) error { t.Error("a master was found"); return nil })
	if !errors.Is(err, nodes.ErrSlow) {
		t.Errorf("the masters: %v", err)
	}
	works.Wait()
	if n := reading(); n > 0 {
		t.Errorf("%d are left", n)
	}
}

// reading counts the goroutines that ask for the slots.
func reading() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*ClusterClient).MasterForKey(")
}

func TestAClosedClientAsksForNoSlots(t *testing.T) {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer rdb.Close()
	ns := nodes.New(nodes.Options{Redis: rdb, Timeout: time.Second, Start: func(func()) bool { return false }})
	if _, err := ns.Of(context.Background(), "k"); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}
