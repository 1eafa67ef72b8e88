package vaults

import "cairn/internal/memory"

// Calls holds the calls about vaults and memories, and the deletes.
type Calls struct{ *memory.Kernel }

// New returns the calls of this package over a kernel.
func New(k *memory.Kernel) *Calls { return &Calls{k} }
