package record

import (
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// Config configures a Service.
type Config struct {
	Filter     *redact.Filter // redacts texts before they are stored; nil for none
	StaleAfter int            // records.stale_after: ticks; 0 for 20
	MaxDepth   int            // records.max_depth: levels; 0 for 32
}

// Service provides the records of all projects of a store. Its methods are the commands
// of the seed. They are safe for concurrent use by goroutines and processes.
//
// Errors are fault.Error with the codes of this package and a hint. A store that cannot
// be written is CodeUnavailable (records §6). A failed call has stored nothing. Commands
// append their changes to the change log in the same transaction.
type Service struct {
	store  *store.Store
	config Config
}

// New returns the service of a store. nil means that there is no store yet: then reads
// find nothing, and writes are discarded when the call returns. So a command can be tried
// before its store is created.
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

// Caller identifies the project and the session of a command (records §1, current project
// and current session). In each group the first field that is set decides.
type Caller struct {
	ProjectID string           `arg:"project_id" about:"The project, by its id. Omitted: the current project."` // id or alias; must exist (PROJECT_NOT_FOUND)
	Project   string           // --project or CAIRN_PROJECT: created by the first write
	Remote    bool             // the caller is not at Place: use its session's project; without one, writes are refused (amendments §B.5)
	Place     project.Location // of the working directory; created by the first write. The zero Place means "default"

	SessionID string            `arg:"session_id" about:"The session that acts. Omitted: the current session."`
	Ancestors []project.Process // ancestors of the process, nearest first: the session of the nearest with a session
	Transport string            // the transport's own session, created when needed; "" for a new one
}

// By returns the caller embedded in arguments.
func (c *Caller) By() *Caller { return c }
