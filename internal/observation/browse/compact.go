package browse

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/store"
)

// compactTokens is the target size, in tokens, of the compact forms of Trace, History and
// Recent. A token is ceil(bytes / 4) of the JSON.
const compactTokens = 2000

// fits reports whether the JSON of v has at most compactTokens tokens.
func fits(v any) bool {
	text, err := observation.CompactJSON(v)
	return err == nil && oneline.Tokens(text) <= compactTokens
}

// traceForm defines how much of a trace is shown.
type traceForm struct {
	prompt, message int  // maximum characters of a prompt's text, and of an agent's or the harness's message
	preview         int  // maximum characters of a row's preview
	fold            int  // foldNone, foldRuns or foldTypes
	listed          int  // maximum number of entries in each list of the summary
	steps           bool // show the next steps of the summary
	only            bool // show only the most informative rows: failures, edits, commits, marks and pinned rows
	users           bool // omit agent messages without rows, except at the end
	newest          int  // number of prompts, counted from the end, that show rows; 0 for all
}

const (
	foldNone  = iota
	foldRuns  // consecutive rows of one type
	foldTypes // all rows of one type under a prompt
)

func traceForms() []traceForm {
	return []traceForm{
		{prompt: 400, message: 240, preview: 120, fold: foldNone, listed: 20, steps: true},
		{prompt: 300, message: 200, preview: 100, fold: foldRuns, listed: 10, steps: true},
		{prompt: 200, message: 120, preview: 80, fold: foldTypes, listed: 8, steps: true},
		{prompt: 120, message: 80, preview: 60, fold: foldTypes, listed: 5},
		{prompt: 100, message: 60, preview: 60, fold: foldTypes, listed: 3, only: true},
		{prompt: 100, message: 100, preview: 60, fold: foldTypes, listed: 3, only: true, users: true},
		{prompt: 60, message: 60, preview: 40, fold: foldTypes, listed: 2, only: true, users: true, newest: 10},
		{prompt: 40, message: 40, preview: 40, fold: foldTypes, listed: 2, only: true, users: true, newest: 4},
	}
}

// Compact returns the trace in at most 2,000 tokens. If its shortest form is longer, it returns
// that form. A trace that is short enough already is returned unchanged. The fields stay the
// same.
//
// Compact first shortens long texts. Then it folds rows of one type into the first of them
// (Count, LastID), and then it omits rows with little information. ObservationCount still
// counts every row. For the longest traces it also omits messages of the agent (Omitted), and
// only the newest prompts show rows.
func (t Trace) Compact() Trace {
	if fits(t) {
		return t
	}
	var out Trace
	for _, form := range traceForms() {
		if out = t.in(form); fits(out) {
			break
		}
	}
	return out
}

func (t Trace) in(f traceForm) Trace {
	t.Summary = shortSummary(t.Summary, f)
	t.Prompts = slices.Clone(t.Prompts)
	if f.users {
		last := len(t.Prompts) - 1
		kept := t.Prompts[:0]
		for i, p := range t.Prompts {
			if p.Source == "agent" && p.ObservationCount == 0 && i < last {
				t.Omitted++
				continue
			}
			kept = append(kept, p)
		}
		t.Prompts = kept
	}
	for i := range t.Prompts {
		p := &t.Prompts[i]
		if p.Content != nil {
			n := f.prompt
			if p.Source != "user" {
				n = f.message
			}
			p.Content = new(oneline.Excerpt(*p.Content, n))
		}
		if f.newest > 0 && i < len(t.Prompts)-f.newest {
			p.Observations = []TraceRow{}
			continue
		}
		p.Observations = foldRows(p.Observations, f)
	}
	return t
}

// shortSummary shortens the lists and texts of a digest. It returns an unreadable digest
// unchanged.
func shortSummary(text json.RawMessage, f traceForm) json.RawMessage {
	var d map[string]any
	if json.Unmarshal(text, &d) != nil || d == nil {
		return text
	}
	for name, v := range d {
		switch v := v.(type) {
		case []any:
			v = v[:min(len(v), f.listed)]
			for i := range v {
				if s, ok := v[i].(string); ok {
					v[i] = oneline.Excerpt(s, f.preview)
				}
			}
			d[name] = v
		case string:
			d[name] = oneline.Excerpt(v, f.prompt)
		}
	}
	if !f.steps {
		delete(d, "next_steps")
	}
	short, err := observation.CompactJSON(d)
	if err != nil {
		return text
	}
	return json.RawMessage(short)
}

// foldRows returns the rows in the form f.
func foldRows(rows []TraceRow, f traceForm) []TraceRow {
	out := []TraceRow{}
	at := map[string]int{} // by type: the row of out that later rows are folded into
	names := map[int][]string{}
	for _, r := range rows {
		tells := r.isImportant()
		if f.only && !tells && r.ObsType != observation.TypeEdit && r.ObsType != observation.TypeWrite {
			continue
		}
		name := r.shorten(f.preview)
		i, ok := at[r.ObsType]
		if ok && !tells && (f.fold == foldTypes || f.fold == foldRuns && i == len(out)-1) {
			out[i].Count = max(out[i].Count, 1) + 1
			out[i].LastID = r.ID
			names[i] = append(names[i], name)
			continue
		}
		if !tells {
			at[r.ObsType] = len(out)
		}
		names[len(out)] = []string{name}
		out = append(out, r)
	}
	for i := range out {
		if out[i].Count > 1 {
			out[i].FilePath = nil
			out[i].ContentPreview = countedNames(names[i], f.preview)
		}
	}
	return out
}

// isImportant reports whether a row is shown separately in every form.
func (r *TraceRow) isImportant() bool {
	switch r.ObsType {
	case observation.TypeGitCommit, observation.TypeGitPush, observation.TypeMarker:
		return true
	}
	return r.Failed || r.IsPinned
}

// shorten cuts the texts of a row and returns the name that a fold shows for it.
func (r *TraceRow) shorten(preview int) string {
	name := oneline.Excerpt(r.ContentPreview, 40)
	if r.FilePath != nil && r.ObsType != observation.TypeSearch {
		name = path.Base(strings.ReplaceAll(*r.FilePath, `\`, "/"))
		if strings.HasPrefix(*r.FilePath, r.ContentPreview) {
			r.ContentPreview = name
		}
	}
	if r.Failed && r.ObsType == observation.TypeCommandError {
		r.ContentPreview, _, _ = strings.Cut(r.ContentPreview, "\n")
	}
	r.ContentPreview = oneline.Excerpt(r.ContentPreview, preview)
	r.Error = oneline.Excerpt(r.Error, preview)
	return name
}

// countedNames lists names on one line of at most n characters. Equal names appear once, with
// their count.
func countedNames(names []string, n int) string {
	count := map[string]int{}
	var order []string
	for _, name := range names {
		if count[name]++; count[name] == 1 {
			order = append(order, name)
		}
	}
	for i, name := range order {
		if count[name] > 1 {
			order[i] = name + " ×" + strconv.Itoa(count[name])
		}
	}
	return oneline.Excerpt(strings.Join(order, ", "), n)
}

// Compact returns the history in at most 2,000 tokens. If even short prompts need more, it
// returns the shortest form. A history that is short enough already is returned unchanged. Of
// consecutive touches with the same prompt, the first shows more of it.
func (h History) Compact() History {
	if fits(h) {
		return h
	}
	out := h
	for _, n := range [...]int{240, 160, 80, 40} {
		out.Sessions = slices.Clone(h.Sessions)
		for i := range out.Sessions {
			s := &out.Sessions[i]
			s.Touches = slices.Clone(s.Touches)
			if s.SummaryIntent != nil {
				s.SummaryIntent = new(oneline.Excerpt(*s.SummaryIntent, n))
			}
			last := ""
			for k := range s.Touches {
				t := &s.Touches[k]
				t.ContentPreview = oneline.Excerpt(t.ContentPreview, max(n, 60))
				if t.PromptContent == nil {
					continue
				}
				shown := n
				if *t.PromptContent == last {
					shown = 30
				}
				last = *t.PromptContent
				t.PromptContent = new(oneline.Excerpt(last, shown))
			}
		}
		if fits(out) {
			break
		}
	}
	return out
}

// CompactScored is a row of Recent in the compact form. It has the seed's fields, and other
// fields only if they carry information.
type CompactScored struct {
	ID          int64           `json:"id"`
	Timestamp   int64           `json:"timestamp"`
	SessionID   string          `json:"session_id"`
	Project     string          `json:"project"`
	ObsType     string          `json:"obs_type"`
	SourceEvent string          `json:"source_event,omitempty"` // absent in the shortest forms after a successful call
	ToolName    *string         `json:"tool_name"`
	Content     string          `json:"content"`
	FilePath    *string         `json:"file_path"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	PromptID    *int64          `json:"prompt_id,omitempty"`
	IsPinned    bool            `json:"is_pinned,omitempty"`
	AgentID     *string         `json:"agent_id,omitempty"`
	Score       float64         `json:"score"`
}

const selectRoots = `SELECT id, root FROM projects WHERE root IS NOT NULL`

// RecentCompact returns the same rows as Recent. If they exceed 2,000 tokens, short contains
// the same rows in compact form; else short is nil. The compact form has at most 2,000 tokens,
// or is the shortest form if that is longer. No row is omitted.
//
// The compact form cuts contents and the strings in metadata, and removes metadata that repeats
// the content. In the shortest forms, paths are relative to the repository's root. There, null
// metadata and the event of a successful call, PostToolUse, are absent.
func RecentCompact(ctx context.Context, svc *observation.Service, s observation.Scope, limit int) (rows []Scored, short []CompactScored, err error) {
	rows, err = Recent(ctx, svc, s, limit)
	if err != nil || fits(rows) {
		return rows, nil, err
	}
	roots := map[string]string{}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Each(ctx, func(r *sql.Rows) error {
			var id, root string
			err := r.Scan(&id, &root)
			roots[id] = root
			return err
		}, selectRoots)
	})
	for _, n := range [...]int{300, 160, 80, 40} {
		short = []CompactScored{}
		for _, r := range rows {
			short = append(short, r.compact(n, roots[r.Project]))
		}
		if fits(short) {
			break
		}
	}
	return rows, short, err
}

// shortestForms is a number of characters. Forms with shorter texts also omit fields.
const shortestForms = 160

// compact returns the row with texts of at most n characters.
func (r *Scored) compact(n int, root string) CompactScored {
	c := CompactScored{
		r.ID, r.Timestamp, r.SessionID, r.Project, r.ObsType, r.SourceEvent, r.ToolName,
		oneline.Excerpt(r.Content, n), r.FilePath, shortMetadata(r.Metadata, n), r.PromptID, r.IsPinned, r.AgentID, r.Score,
	}
	if n >= shortestForms {
		return c
	}
	c.PromptID = nil
	c.Score = math.Round(r.Score*1000) / 1000
	if string(c.Metadata) == "null" {
		c.Metadata = nil
	}
	if c.SourceEvent == "PostToolUse" {
		c.SourceEvent = ""
	}
	if c.FilePath != nil {
		if *c.FilePath == r.Content {
			c.Content = path.Base(strings.ReplaceAll(r.Content, `\`, "/"))
		}
		if root != "" {
			c.FilePath = new(strings.TrimPrefix(*c.FilePath, root+"/"))
		}
	}
	return c
}

// shortMetadata returns metadata with strings of at most n characters, without fields that
// repeat the content. It returns null if no field is left.
func shortMetadata(text json.RawMessage, n int) json.RawMessage {
	var m map[string]any
	if json.Unmarshal(text, &m) != nil || m == nil {
		return text
	}
	for name, v := range m {
		switch v := v.(type) {
		case string:
			if name == "error" {
				v, _, _ = strings.Cut(v, "\n")
			}
			m[name] = oneline.Excerpt(v, n)
		case []any:
			if len(v) > n/20 {
				delete(m, name)
			}
		}
	}
	for _, name := range [...]string{"command", "params", "server", "method", "imported", "duration_ms", "model"} {
		delete(m, name)
	}
	if n < shortestForms {
		for _, name := range [...]string{"description", "mode", "num_files", "replace_all", "redacted", "kind"} {
			delete(m, name)
		}
	}
	if len(m) == 0 {
		return json.RawMessage("null")
	}
	short, err := observation.CompactJSON(m)
	if err != nil {
		return text
	}
	return json.RawMessage(short)
}
