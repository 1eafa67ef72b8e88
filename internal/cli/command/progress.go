package command

import (
	"fmt"
	"time"
)

// AfterASecond returns a function that prints the current step on standard error, once
// the command has run for a second.
func (p *Process) AfterASecond() func(what string) {
	began := time.Now()
	return func(what string) {
		if time.Since(began) > time.Second {
			fmt.Fprintln(p.Err, "cairn: "+what)
		}
	}
}

// Progress returns a function that prints the progress on standard error, at most twice
// a second and only after the first second. A total of 0 is unknown.
func (p *Process) Progress(what string) func(done, total int) {
	last := time.Now().Add(time.Second / 2)
	return func(done, total int) {
		if time.Since(last) < time.Second/2 {
			return
		}
		last = time.Now()
		if total == 0 {
			fmt.Fprintf(p.Err, "cairn: %d %s\n", done, what)
			return
		}
		fmt.Fprintf(p.Err, "cairn: %d of %d %s\n", done, total, what)
	}
}

// ReportSlow prints a message after a second, unless stop is called before.
func (p *Process) ReportSlow() (stop func() bool) {
	return time.AfterFunc(time.Second, func() {
		fmt.Fprintln(p.Err, "cairn: still working; a large store takes a while")
	}).Stop
}
