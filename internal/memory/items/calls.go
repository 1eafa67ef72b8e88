package items

import "cairn/internal/memory"

// Items holds the calls that apply items and list what they have changed.
type Items struct{ *memory.Kernel }

// New returns the calls of this package over a kernel.
func New(k *memory.Kernel) *Items { return &Items{k} }
