package agents

import "cairn/internal/mail"

// Agents holds the calls about projects, agents and the sessions that act as them.
type Agents struct{ *mail.Kernel }

// New returns the calls of this package over a kernel.
func New(k *mail.Kernel) *Agents { return &Agents{k} }
