package lookup

import "cairn/internal/record"

// Lookup holds the calls that read records.
type Lookup struct{ *record.Kernel }

// New returns the calls of this package over a kernel.
func New(k *record.Kernel) *Lookup { return &Lookup{k} }
