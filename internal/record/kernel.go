package record

import (
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// Config configures the records of a store.
type Config struct {
	Filter     *redact.Filter // redacts texts before they are stored; nil for none
	StaleAfter int            // records.stale_after: ticks; 0 for 20
	MaxDepth   int            // records.max_depth: levels; 0 for 32
}

// Kernel runs the transactions of the calls of records. The packages around this one hold
// it. It is safe for concurrent use by goroutines and processes.
//
// Errors are fault.Error with the codes of this package and a hint. A store that cannot
// be written is CodeUnavailable (records §6).
type Kernel struct {
	Store  *store.Store
	Config Config
}

// New returns the kernel of a store. nil means that there is no store yet: then reads find
// nothing, and writes are discarded when the call returns.
func New(s *store.Store, c Config) *Kernel {
	if c.StaleAfter <= 0 {
		c.StaleAfter = 20
	}
	if c.MaxDepth <= 0 {
		c.MaxDepth = 32
	}
	return &Kernel{Store: s, Config: c}
}

// Exists reports whether there is a store.
func (b *Kernel) Exists() bool { return b.Store != nil }

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
