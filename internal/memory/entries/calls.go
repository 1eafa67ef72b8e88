package entries

import "cairn/internal/memory"

// Entries holds the calls about entries and context documents.
type Entries struct{ *memory.Kernel }

// New returns the calls of this package over a kernel.
func New(k *memory.Kernel) *Entries { return &Entries{k} }
