package observation

import (
	"context"
	"encoding/json"
	"time"

	"cairn/internal/redact"
	"cairn/internal/store"
)

// Config configures a Service.
type Config struct {
	Filter      *redact.Filter
	Home        string        // the user's home directory, "" if there is none
	DedupWindow time.Duration // an equal read or search within it is dropped; 0 turns this off
	Limits      Limits        // of the injected context
	AssistTime  time.Duration // CPU time limit for assistance during a turn; 0 turns assistance off
	AssistWall  time.Duration // elapsed time limit for the same; 0 means DefaultAssistWall

	Worked     func() time.Duration // returns this process's CPU time; nil: use elapsed time instead
	Retention  Retention            // nil: nothing expires
	MaxBytes   int64                // maximum size of the store, 0 for no limit
	Output     OutputMode           // which outputs of commands and tools are kept
	OutputDays int                  // days after which an output expires; 0: never
	Unnamed    []string             // harnesses whose hooks lack ids that their transcripts contain, see Match
	Kept       []Keeper             // parts whose sessions a purge must keep; nil: none
}

// Keeper returns the keys of those sessions that a part needs. A purge keeps them.
type Keeper func(ctx context.Context, tx *store.Tx, sessions []int64) ([]int64, error)

// DefaultDedupWindow is the window of observations §5.
const DefaultDedupWindow = 300 * time.Second

// Service is the part's handle: all operations on observations. Its methods are safe for
// concurrent use.
type Service struct {
	Store  *store.Store
	Config Config
}

// New returns the service of an open store. With a nil store, queries return the results of an
// empty store, and nothing can be recorded.
func New(s *store.Store, c Config) *Service { return &Service{Store: s, Config: c} }

// Read runs fn on a snapshot. Without a store it does not run fn.
func (svc *Service) Read(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if svc.Store == nil {
		return nil
	}
	return svc.Store.Read(ctx, fn)
}

// Observation is a row as tools return it in full (observations §3).
type Observation struct {
	ID          int64           `json:"id"`
	Timestamp   int64           `json:"timestamp"` // Unix seconds
	SessionID   string          `json:"session_id"`
	Project     string          `json:"project"`
	ObsType     string          `json:"obs_type"`
	SourceEvent string          `json:"source_event"`
	ToolName    *string         `json:"tool_name"`
	Content     string          `json:"content"`
	FilePath    *string         `json:"file_path"`
	Metadata    json.RawMessage `json:"metadata"` // an object, or null
	PromptID    *int64          `json:"prompt_id"`
	IsPinned    bool            `json:"is_pinned"`
	AgentID     *string         `json:"agent_id"`

	// Output is the digest of the output of the command or tool, "" if none is stored. Only Get
	// reads it.
	Output string `json:"output,omitempty"`
}

// Exists reports whether the service has a store.
func (svc *Service) Exists() bool { return svc.Store != nil }
