package command

import (
	"io"
	"sync/atomic"
)

// Output remembers the first write error, so that commands need not check each one. A
// command whose output cannot be written fails. Safe for concurrent use, because a
// server may still write while it ends.
type Output struct {
	io.WriteCloser
	first atomic.Pointer[error]
}

// Write writes p and remembers the first error.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.WriteCloser.Write(p)
	if err != nil {
		o.first.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Failed returns the first write error, or nil.
func (o *Output) Failed() error {
	if err := o.first.Load(); err != nil {
		return *err
	}
	return nil
}
