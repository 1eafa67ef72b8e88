package record

import (
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// Config is how a Service judges and what it takes out.
type Config struct {
	Filter     *redact.Filter // takes secrets out before anything is stored; nil for none
	StaleAfter int            // records.stale_after: ticks; 0 for 20
	MaxDepth   int            // records.max_depth: levels; 0 for 32
}

// Service is the records of every project of a store. Its methods are the commands
// of the seed; any number of goroutines and processes may call them.
//
// Errors are fault.Error with the codes of this room, a hint each; a store that
// cannot be written is CodeUnavailable (records §6). A call that fails has
// stored nothing. Commands that change something append it to the change log in
// the same transaction.
type Service struct {
	store  *store.Store
	config Config
}

// New returns the service of a store; nil for no store yet: then reading finds
// nothing, and what would be stored is gone when the call returns, so that a
// command can be tried before a store is made for it.
func New(s *store.Store, c Config) *Service {
	if c.StaleAfter <= 0 {
		c.StaleAfter = 20
	}
	if c.MaxDepth <= 0 {
		c.MaxDepth = 32
	}
	return &Service{store: s, config: c}
}

// Exists reports whether there is a store.
func (b *Service) Exists() bool { return b.store != nil }

// Caller says for which project and session a command acts (records §1, current
// project and current session). In each group the first that is set decides.
type Caller struct {
	ProjectID string           `arg:"project_id" about:"The project, by its id. Omitted: the current project."` // id or alias; must exist (PROJECT_NOT_FOUND)
	Project   string           // --project or CAIRN_PROJECT: created by the first write
	Remote    bool             // from another machine or process than Place tells of: its session's project, without one no write (amendments §B.5)
	Place     project.Location // the working directory's; created by the first write. The zero Place stands for "default"

	SessionID string            `arg:"session_id" about:"The session that acts. Omitted: the current session."`
	Ancestors []project.Process // the processes above this one, nearest first: the session of the nearest that has one
	Transport string            // the transport's own session, made at first need; "" for a new one
}

// By returns the caller of arguments, in which it is embedded.
func (c *Caller) By() *Caller { return c }
