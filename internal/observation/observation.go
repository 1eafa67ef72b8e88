package observation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/project"
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
	store  *store.Store
	config Config
}

// New returns the service of an open store. Without a store (nil) it answers
// every question as an empty one would and can record nothing.
func New(s *store.Store, c Config) *Service { return &Service{store: s, config: c} }

// read runs fn over a snapshot, or not at all if there is no store yet.
func (j *Service) read(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if j.store == nil {
		return nil
	}
	return j.store.Read(ctx, fn)
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

// Row types that the code names.
const (
	typePrompt       = "user_prompt"
	typeMessage      = "agent_message"
	typeSessionStart = "session_start"
	typeSessionEnd   = "session_end"
	typeCompact      = "session_compact"
	typeRead         = "file_read"
	typeWrite        = "file_write"
	typeEdit         = "file_edit"
	typeSearch       = "search"
	typeCommand      = "command"
	typeCommandError = "command_error"
	typeGitCommit    = "git_commit"
	typeGitPush      = "git_push"
	typeGitHub       = "github"
	typeMCP          = "mcp_call"
	typeSpawn        = "task_spawn"
	typeFetch        = "web_fetch"
	typeWebSearch    = "web_search"
	typeOther        = "tool_other"
	typeMarker       = "marker"
)

// types lists every row type.
func types() []string {
	return []string{
		typePrompt, typeMessage, typeSessionStart, typeSessionEnd, typeCompact, typeRead, typeWrite,
		typeEdit, typeSearch, typeCommand, typeCommandError, typeGitCommit, typeGitPush, typeGitHub,
		typeMCP, typeSpawn, typeFetch, typeWebSearch, typeOther, typeMarker,
	}
}

// isAction tells actions from prompts, messages and session marks (observations §6).
func isAction(obsType string) bool {
	return obsType != typePrompt && obsType != typeMessage && !strings.HasPrefix(obsType, "session_")
}

// MarkArgs is a note that a person leaves in the history.
type MarkArgs struct {
	Text    string
	Project string // id or alias, "" for the project of Cwd
	Session string // "" for the project's newest session active within a day
	Cwd     string
	Pin     bool
}

// Mark stores a marker and returns its id (observations §11.2). Without a
// session it goes to the project's newest session that was active within 24
// hours, else to a new session mark-<unix time>. Blank text is Invalid, an
// unknown session or project NotFound. Each call stores a new marker; without a
// store it only reports whether that would be refused.
func (j *Service) Mark(ctx context.Context, a MarkArgs) (id int64, err error) {
	text, redacted := j.config.Filter.Head(strings.TrimSpace(a.Text), 2000)
	if strings.TrimSpace(text) == "" {
		return 0, fault.New(fault.Invalid, "invalid_argument", "the text of a mark must not be blank")
	}
	place, err := project.Locate(a.Cwd, j.config.Home)
	if err != nil {
		return 0, err
	}
	d := draft{Type: typeMarker, Content: text}
	if redacted {
		d.Meta = metadata{"redacted": true}
	}
	err = j.write(ctx, func(ctx context.Context, tx *store.Tx) error {
		w, err := j.markSession(ctx, tx, a, place)
		if err != nil {
			return err
		}
		if err = w.findParent(ctx, tx); err != nil {
			return err
		}
		if id, err = w.insert(ctx, tx, d); err != nil || !a.Pin {
			return err
		}
		_, err = tx.Exec(ctx, updatePinned, 1, id)
		return err
	})
	return id, err
}

// write runs fn in a transaction, without a store in one that leaves nothing behind.
func (j *Service) write(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if j.store == nil {
		return store.Scratch(ctx, time.Unix(0, 0), fn)
	}
	return j.store.Write(ctx, store.Normal, fn)
}

// markSession finds or makes the session that a marker goes to.
func (j *Service) markSession(ctx context.Context, tx *store.Tx, a MarkArgs, place project.Location) (*writing, error) {
	now := tx.Now().Unix()
	w := &writing{event: Event{Source: "Mark"}, at: now, place: place}
	p, err := markProject(ctx, tx, a.Project, place)
	if err != nil {
		return nil, err
	}
	id := a.Session
	if id == "" {
		err := tx.Get(ctx, []any{&id}, selectActiveSession, p.ID, now-24*60*60)
		if errors.Is(err, sql.ErrNoRows) {
			w.session, err = project.NewSession(ctx, tx, "mark-"+strconv.FormatInt(now, 10), p)
			w.project = p
			return w, err
		}
		if err != nil {
			return nil, err
		}
	}
	ses, ok, err := project.FindSession(ctx, tx, id)
	if err == nil && !ok {
		err = sessionNotFound(id)
	}
	w.session, w.project = ses, p
	return w, err
}

func markProject(ctx context.Context, tx *store.Tx, name string, place project.Location) (project.Project, error) {
	if name == "" {
		return project.Resolve(ctx, tx, place)
	}
	p, ok, err := project.Find(ctx, tx, name)
	if err == nil && !ok {
		err = project.NotFound(name)
	}
	return p, err
}

func noProject(name string) error {
	return fault.Newf(fault.NotFound, "not_found", "no project is called %q", name).
		WithHint("`cairn project list` shows them")
}

func sessionNotFound(id string) error {
	return fault.New(fault.NotFound, "not_found", "session not found: "+id)
}

// PinArgs names what to pin or unpin: ids, a whole session, or a file's rows.
// Exactly one of them is given.
type PinArgs struct {
	IDs     []int64
	Session string
	File    string
	Cwd     string // File is relative to it
	Unpin   bool
}

// Pin pins or unpins rows and returns how many there now are in that state. An
// unknown target is NotFound and changes nothing. Repeating it is harmless.
func (j *Service) Pin(ctx context.Context, a PinArgs) (n int64, err error) {
	place, err := project.Locate(a.Cwd, j.config.Home)
	if err != nil {
		return 0, err
	}
	pinned := 1
	if a.Unpin {
		pinned = 0
	}
	err = j.store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		ids, err := pinTargets(ctx, tx, a, place)
		if err != nil {
			return err
		}
		n = int64(len(ids))
		for _, id := range ids {
			if _, err := tx.Exec(ctx, updatePinned, pinned, id); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

func pinTargets(ctx context.Context, tx *store.Tx, a PinArgs, place project.Location) (ids []int64, err error) {
	collect := func(query string, args ...any) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var id int64
			err := r.Scan(&id)
			ids = append(ids, id)
			return err
		}, query, args...)
	}
	var missing error
	switch {
	case a.Session != "":
		err, missing = collect(selectSessionIDs, a.Session), sessionNotFound(a.Session)
	case a.File != "":
		missing = fault.Newf(fault.NotFound, "not_found", "no observation touches %s", a.File)
		p, ok, ferr := project.Current(ctx, tx, place)
		if ferr != nil || !ok {
			return nil, errors.Join(ferr, missing)
		}
		err = collect(selectFileIDs, p.Key, place.Within(p).PathKey(a.File))
	default:
		for _, id := range a.IDs {
			before := len(ids)
			if err := collect(selectID, id); err != nil {
				return nil, err
			}
			if len(ids) == before {
				return nil, fault.Newf(fault.NotFound, "not_found", "no observation has the id %d", id)
			}
		}
	}
	if err == nil && len(ids) == 0 {
		err = missing
	}
	return ids, err
}

// Exists reports whether there is a store behind the service.
func (j *Service) Exists() bool { return j.store != nil }
