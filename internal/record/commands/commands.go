package commands

import (
	"cairn/internal/record"
	"cairn/internal/record/lookup"
	"cairn/internal/store"
)

// Commands provides the records of all projects of a store. Its methods are the commands
// of the seed. They are safe for concurrent use by goroutines and processes.
//
// Errors are fault.Error with the codes of package record and a hint. A store that cannot
// be written is record.CodeUnavailable (records §6). A failed call has stored nothing.
// Commands append their changes to the change log in the same transaction.
type Commands struct{ *lookup.Lookup }

// New returns the commands of a store. nil means that there is no store yet: then reads
// find nothing, and writes are discarded when the call returns. So a command can be tried
// before its store is created.
func New(s *store.Store, c record.Config) *Commands {
	return &Commands{lookup.New(record.New(s, c))}
}
