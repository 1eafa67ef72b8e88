package documents

import "cairn/internal/mail"

// Documents holds the calls that delete messages permanently.
type Documents struct{ *mail.Kernel }

// New returns the calls of this package over a kernel.
func New(k *mail.Kernel) *Documents { return &Documents{k} }
