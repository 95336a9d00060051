package nodes

import (
	"context"
	"sync"
)

// load tracks how a script reaches a server that has forgotten it or never seen it. One call brings the source. Others wait for that call,
// so that they need not send the source too.
type load struct {
	mu    sync.Mutex // guards the fields below
	done  uint64     // how often it was brought
	under chan struct{}
}

// Named sends scripts by name, and by source if the server does not know them. send receives the indices of the scripts to send, in one
// trip and in this order, and reports which of those sent by name the server does not know. Named returns an error if the context ended
// before the rest was sent.
func (n *Node) Named(ctx context.Context, scripts []Script, send func(mine []int, whole func(i int) bool) (unknown []int)) error {
	loads, seen, all := make([]*load, len(scripts)), make([]uint64, len(scripts)), make([]int, len(scripts))
	for i, s := range scripts {
		l, known := n.loads.Load(s.sha)
		if !known {
			l, _ = n.loads.LoadOrStore(s.sha, new(load))
		}
		loads[i], all[i] = l.(*load), i
		var err error
		if seen[i], err = loads[i].await(ctx); err != nil {
			return err
		}
	}
	unknown := send(all, func(int) bool { return false })
	if len(unknown) == 0 {
		return nil
	}
	brings := make(map[int]bool) // the first call of each script brings it, and later ones in the same trip find it there
	met := make(map[*load]bool)
	defer func() {
		for i := range brings {
			loads[i].end()
		}
	}()
	for _, i := range unknown {
		if l := loads[i]; !met[l] {
			met[l] = true
			mine, err := l.begin(ctx, seen[i], len(brings) == 0)
			if err != nil {
				return err
			}
			if mine {
				brings[i] = true
			}
		}
	}
	if unknown = send(unknown, func(i int) bool { return brings[i] }); len(unknown) > 0 {
		send(unknown, func(int) bool { return true }) // the call that was to bring it failed, or the script is gone again
	}
	return nil
}

// await waits for the call that is bringing the script now, and returns how often it was brought.
func (l *load) await(ctx context.Context) (done uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.awaitLocked(ctx)
	return l.done, err
}

func (l *load) awaitLocked(ctx context.Context) error {
	for l.under != nil {
		under := l.under
		l.mu.Unlock()
		select {
		case <-under:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if ctx.Err() != nil {
			return Left(ctx.Err())
		}
	}
	return nil
}

// begin reports whether the caller must bring the script, and then call end. It need not if another call has brought the script since seen,
// or is bringing it; with waits, begin waits for that call.
func (l *load) begin(ctx context.Context, seen uint64, waits bool) (mine bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under == nil && l.done == seen {
		l.under = make(chan struct{})
		return true, nil
	}
	if waits {
		err = l.awaitLocked(ctx)
	}
	return false, err
}

func (l *load) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done++
	close(l.under)
	l.under = nil
}
