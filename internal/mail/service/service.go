package service

import (
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/documents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/store"
)

// Mail is the mail of every project of a store: the calls of all packages of mail and the
// calls that combine several of them. The tools of the contract (mail §5) are its methods.
// It is safe for concurrent use, also by several processes.
//
// Errors are fault.Error with the codes of package mail. Their details always contain
// "recoverable". A call that fails has stored nothing.
type Mail struct {
	*mail.Kernel
	*agents.Agents
	*messages.Messages
	*reservations.Reservations
	*documents.Documents
}

// New returns the mail of a store. Without a store (nil), reads find nothing and writes
// run on an empty store that is discarded afterwards.
func New(s *store.Store, c mail.Config) *Mail {
	k := mail.New(s, c)
	return &Mail{k, agents.New(k), messages.New(k), reservations.New(k), documents.New(k)}
}
