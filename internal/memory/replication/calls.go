package replication

import "cairn/internal/memory"

// Replication holds the calls of the replication.
type Replication struct{ *memory.Kernel }

// New returns the calls of this package over a kernel.
func New(k *memory.Kernel) *Replication { return &Replication{k} }
