package flight

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Result is what work returned.
type Result[T any] struct {
	Value T
	Err   error
}

// PanicError is the error of work that panicked.
type PanicError struct {
	Value any    // the value of the panic
	Stack []byte // where it happened
}

// Error names the value and leaves out the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrGoexit is the error of work that ended its goroutine with runtime.Goexit, as testing.T.FailNow does.
var ErrGoexit = errors.New("runtime.Goexit was called")

// Go runs work in its own goroutine and delivers one Result, however the work ends: by returning, by a panic (a [*PanicError]) or by
// runtime.Goexit ([ErrGoexit]). It does not matter if nobody receives it.
func Go[T any](work func() (T, error)) <-chan Result[T] {
	done := make(chan Result[T], 1)
	go func() {
		r := Result[T]{Err: ErrGoexit}
		defer func() { done <- r }()
		defer Recover(&r.Err)
		r.Value, r.Err = work()
	}()
	return done
}

// Recover, deferred, turns a panic into an error.
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = Public(&PanicError{p, debug.Stack()})
	}
}

// Public turns the error of a panic into one that users can name. The root package sets it, since this package cannot import the root.
var Public = func(p *PanicError) error { return p }
