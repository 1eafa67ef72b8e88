package shards

import (
	"cairn/internal/fault"
	"cairn/internal/memory/rules"
)

// Codes of the errors of this package (memories §9).
const (
	CodeQueueFull = "queue_full"
	CodeStopping  = "stopping"
	CodeInternal  = "internal"
)

func stopping() *fault.Error {
	return rules.Failure(fault.Unavailable, CodeStopping, "cairn is stopping; call again when it runs", "cairn is stopping")
}

// panicked returns the error of a job that panicked. Its cause contains the stack.
func panicked(cause error) error {
	return fault.Wrap(cause, fault.Internal, CodeInternal, "a defect in cairn stopped this operation").
		WithHint("nothing of it was stored; please report it")
}
