package reservations

import "cairn/internal/mail"

// Reservations holds the calls that reserve files, release reservations and guard edits.
type Reservations struct{ *mail.Kernel }

// New returns the calls of this package over a kernel.
func New(k *mail.Kernel) *Reservations { return &Reservations{k} }
