package journal

import (
	"errors"
	"strings"
	"syscall"
	"time"
)

// When the disk does not take what is written, writes are refused until it does. What was recorded already stays pending, and is written first.

// syncError is a sync that failed. What the system still has of the file then, and whether another sync would tell, nobody knows.
type syncError struct{ error }

func (e syncError) Unwrap() error { return e.error }

// fail notes that the disk does not take what was written: writes are refused until it does; j.mu is held.
func (j *Journal) fail(err error) {
	j.cause = err
	reason := err
	var number syscall.Errno
	if errors.As(err, &number) {
		reason = errors.New(strings.ToUpper(number.Error()[:1]) + number.Error()[1:])
	}
	text := "MISCONF Errors writing to the AOF file: " + reason.Error()
	j.broken.Store(&text)
	if sync := (syncError{}); errors.As(err, &sync) {
		j.unsure = true
	}
	j.changed.Broadcast()
	j.retryLater()
}

// retryLater has retry called; j.mu is held.
func (j *Journal) retryLater() {
	if j.closed {
		return
	}
	j.goroutine.Add(1)
	time.AfterFunc(retryEvery, func() {
		defer j.goroutine.Done()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.retry()
	})
}

// retry has the writer try again; j.mu is held. After a sync that failed only a new base helps, written from memory.
func (j *Journal) retry() {
	if j.cause == nil || j.closed {
		return
	}
	if j.unsure {
		j.compact.failed = nil
	} else if j.cause = nil; len(j.pending) == 0 {
		j.mend()
	}
	j.changed.Broadcast()
}

// mend lets writes be done again; j.mu is held.
func (j *Journal) mend() {
	j.cause, j.unsure = nil, false
	j.broken.Store(nil)
}
