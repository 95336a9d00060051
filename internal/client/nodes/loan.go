package nodes

import (
	"context"
	"errors"
	"math/bits"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/turns"
)

// Loan is the memory of an answer that its reader gives back.
type Loan = turns.Loan

// MostLent is the longest answer that is lent.
const MostLent = 64 << 10

// leastLent is the size of the smallest loans.
const leastLent = 2 << 10

// lending has the loans that were given back, by their size.
var lending [1 + 16 - 11]sync.Pool

// loan is the memory of an answer, and the command that reads an answer into it.
type loan struct {
	*redis.ZeroCopyStringCmd
	bytes []byte
}

// NoRetry implements redis.Cmder. go-redis may repeat the read: nobody sees the memory before there is an answer, and each attempt begins
// anew.
func (*loan) NoRetry() bool { return false }

// borrow returns a loan for an answer of about size bytes to a GET of key; nil if that is too much. There is room for a quarter more, and
// for the end of line that go-redis reads with the answer.
func borrow(size int, key string) *loan {
	if size > MostLent-MostLent/4 {
		return nil
	}
	class := max(bits.Len(uint(size+size/4+2-1)), bits.Len(leastLent-1))
	pool := &lending[class-bits.Len(leastLent-1)]
	l, _ := pool.Get().(*loan)
	if l == nil {
		l = &loan{bytes: make([]byte, 1<<class)}
		l.ZeroCopyStringCmd = redis.NewZeroCopyStringCmd(context.Background(), l.bytes, "get", nil)
	}
	l.Args()[1] = key
	return l
}

// GiveBack implements turns.Loan.
func (l *loan) GiveBack() {
	spoil(l.bytes)
	lending[bits.Len(uint(len(l.bytes)-1))-bits.Len(leastLent-1)].Put(l)
}

// sendLending asks for one read into lent memory. It reports false if the answer did not fit, or is not expected to.
func (n *Node) sendLending(ctx context.Context, r *turns.Read) (lost error, fits bool) {
	l := borrow(r.Lend, r.Key)
	if l == nil {
		return nil, false
	}
	n.client.Process(ctx, l)
	switch err := l.Err(); {
	case err == nil:
		r.Answered, r.Found, r.Raw, r.Loan = true, true, l.Bytes(), l
	case errors.Is(err, redis.Nil):
		l.SetErr(nil)
		l.GiveBack()
		r.Answered = true
	case Answered(err) || n.elsewhere(err):
		r.Answered, r.Err = true, err
	case isTooSmall(err):
		return nil, false
	default: // something may still hold the command
		return err, true
	}
	return nil, true
}

// isTooSmall reports whether go-redis found no room for an answer. It has no error value for that.
func isTooSmall(err error) bool { return strings.HasPrefix(err.Error(), "redis: buffer too small") }
