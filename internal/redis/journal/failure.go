package journal

import (
	"errors"
	"strings"
	"syscall"
	"time"
)

// When a write to disk fails, commands that write are refused until it succeeds. What was recorded before stays pending, and is written
// first.

// syncError is a failed sync. After it the contents of the file are unknown, and another sync might hide the loss.
type syncError struct{ error }

func (e syncError) Unwrap() error { return e.error }

// fail records that writing to disk failed: commands that write are refused until it succeeds; j.mu is held.
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

// retryLater schedules a retry; j.mu is held.
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

// retry makes the writer try again; j.mu is held. After a failed sync only a new base, written from memory, helps.
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

// mend allows writes again; j.mu is held.
func (j *Journal) mend() {
	j.cause, j.unsure = nil, false
	j.broken.Store(nil)
}
