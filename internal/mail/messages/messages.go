package messages

import "cairn/internal/mail"

// Messages holds the calls that send, list, search and summarize messages, and the calls about
// contacts.
type Messages struct{ *mail.Kernel }

// New returns the calls of this package over a kernel.
func New(k *mail.Kernel) *Messages { return &Messages{k} }
