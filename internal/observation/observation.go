package observation

import (
	"context"
	"encoding/json"
	"time"

	"cairn/internal/redact"
	"cairn/internal/store"
)

// Config is what a Service needs to know beside its store.
type Config struct {
	Filter      *redact.Filter
	Home        string        // the user's home directory, "" if there is none
	DedupWindow time.Duration // within which an equal read or search is dropped; 0 turns that off
	Limits      Limits        // of the injected context
	AssistTime  time.Duration // of work that help during a turn may take; 0 turns it off
	AssistWall  time.Duration // that it may take by the clock; 0 for DefaultAssistWall

	Worked     func() time.Duration // the processor time that this process has used; nil: the clock stands in for it
	Retention  Retention            // nil: nothing expires
	MaxBytes   int64                // what the store may hold, 0 for any amount
	Output     OutputMode           // which outputs of commands and tools are kept
	OutputDays int                  // after how many days an output expires; 0: never
	Unnamed    []string             // harnesses whose hooks know no ids that their transcripts know, see Match
	Kept       []Keeper             // the other parts that need sessions; nil: none does
}

// Keeper returns which of the sessions, by their keys, a part needs: a purge leaves them.
type Keeper func(ctx context.Context, tx *store.Tx, sessions []int64) ([]int64, error)

// DefaultDedupWindow is the window of observations §5.
const DefaultDedupWindow = 300 * time.Second

// Service is the part's handle: everything that can be done with observations.
// Its methods may be called from any number of goroutines.
type Service struct {
	Store  *store.Store
	Config Config
}

// New returns the service of an open store. Without a store (nil) it answers
// every question as an empty one would and can record nothing.
func New(s *store.Store, c Config) *Service { return &Service{Store: s, Config: c} }

// Read runs fn over a snapshot, or not at all if there is no store yet.
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

	// Output is the digest of what the command or tool printed, "" if none is kept. Only
	// Get reads it.
	Output string `json:"output,omitempty"`
}

// Exists reports whether there is a store behind the service.
func (svc *Service) Exists() bool { return svc.Store != nil }
