package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/linediff"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/commands"
)

// The actions of a record's form.
const (
	doNew    = "new"    // create one, below Parent
	doEdit   = "edit"   // change its texts
	doState  = "state"  // move it to another state
	doAnswer = "answer" // create a record that resolves it
)

// recordForm is the form of a record with the user's input.
type recordForm struct {
	Do      string         `json:"do"`
	ID      string         `json:"id,omitempty"`
	Parent  string         `json:"parent,omitempty"` // parent of a new record, "" for a root
	Type    string         `json:"type,omitempty"`
	Title   string         `json:"title,omitempty"`
	Summary string         `json:"summary,omitempty"`
	Body    string         `json:"body,omitempty"`
	Version int            `json:"version,omitempty"` // the version that the user has seen
	Tick    int64          `json:"tick,omitempty"`    // tick at which that version was created
	To      record.State   `json:"to,omitempty"`
	States  []record.State `json:"states,omitempty"` // states that it may change to
	Reason  string         `json:"reason,omitempty"`
	By      string         `json:"resolved_by,omitempty"`
	Problem string         `json:"problem,omitempty"`
	Hint    string         `json:"hint,omitempty"`

	Theirs *record.Record `json:"stored,omitempty"` // the version that was stored in the meantime, nil for none
	Mine   string         `json:"yours,omitempty"`  // the body that the user sent, shown next to Theirs
	Merged bool           `json:"merged,omitempty"` // Body contains the changes of both sides
}

// newRecordForm returns the form that the URL requests, nil for none.
func (p *recordsPage) newRecordForm(r *http.Request) *recordForm {
	f := &recordForm{Do: r.URL.Query().Get("do")}
	switch {
	case p.At != "":
		return nil
	case f.Do == doNew:
		f.Parent = r.URL.Query().Get("parent")
		return f
	case p.One == nil:
		return nil
	}
	f.ID, f.Version, f.Tick = p.One.ID, p.One.Version, newestTick(p.History)
	switch f.Do {
	case doEdit:
		f.Title, f.Summary, f.Body = p.One.Title, p.One.Summary, p.One.Body
	case doState:
		f.States = commands.NextStates(p.One.State)
	case doAnswer:
		f.Type = "conclusion"
	default:
		return nil
	}
	return f
}

// newestTick returns the tick at which the newest version of a record was created.
func newestTick(history []record.HistoryItem) (tick int64) {
	for _, h := range history {
		tick = max(tick, h.Tick)
	}
	return tick
}

// sentRecordForm parses a submitted form.
func sentRecordForm(r *http.Request, id string) *recordForm {
	v := r.PostForm
	f := &recordForm{
		Do: v.Get("do"), ID: id, Parent: v.Get("parent"), Type: v.Get("type"), Title: v.Get("title"), Summary: v.Get("summary"),
		Body: strings.ReplaceAll(v.Get("body"), "\r\n", "\n"), To: record.State(v.Get("to")), Reason: v.Get("reason"), By: strings.TrimSpace(v.Get("by")),
	}
	f.Version, _ = strconv.Atoi(v.Get("version")) // 0 is not a version, so the form is rejected
	f.Tick, _ = strconv.ParseInt(v.Get("tick"), 10, 64)
	return f
}

// sendRecord executes a form and redirects to the record. If the form is rejected, it is
// shown again with the submitted text.
func (s *Site) sendRecord(r *http.Request, v Visitor, at place) (Response, error) {
	f := sentRecordForm(r, at.id)
	id, err := s.storeRecord(r.Context(), at.key, f)
	if err == nil && f.Theirs == nil {
		return Response{To: recordPath(at.key, id)}, nil
	}
	if problem, ok := errors.AsType[*fault.Error](err); ok {
		f.Problem, f.Hint = problem.Message, problem.Hint
	} else if err != nil {
		return Response{}, err
	}
	a, failed := s.recordsWith(r, v, at, f)
	if failed != nil {
		return Response{}, failed
	}
	if f.Theirs != nil {
		a.Status = http.StatusConflict
	}
	return a, err
}

// storeRecord writes in a separate session, which it closes, and returns the id of the
// record to show. If another version was stored in the meantime, it stores nothing and
// sets f.Theirs.
func (s *Site) storeRecord(ctx context.Context, projectID string, f *recordForm) (id string, err error) {
	records, session := s.cairn.Records(), cairn.NewSessionID()
	c := record.Caller{ProjectID: projectID, Transport: session, Ancestors: []project.Process{}}
	defer func() {
		_, failed := records.Close(ctx, record.SaveArgs{Caller: record.Caller{ProjectID: projectID, SessionID: session}})
		if err == nil { // otherwise there may be no session to close
			err = failed
		}
	}()
	if f.Parent != "" && f.Do == doNew {
		if _, err := records.Activate(ctx, record.ActivateArgs{Caller: c, ID: f.Parent, Override: true}); err != nil {
			return "", err
		}
		c = record.Caller{ProjectID: projectID, SessionID: session}
	}
	if f.Do == doNew {
		return s.createRecord(ctx, c, f, f.Parent)
	}
	loaded, err := records.Activate(ctx, record.ActivateArgs{Caller: c, ID: f.ID, Override: true})
	if err != nil {
		return "", err
	}
	c = record.Caller{ProjectID: projectID, SessionID: session}
	switch f.Do {
	case doEdit:
		return f.ID, s.updateRecord(ctx, c, f, loaded.Context.Target)
	case doAnswer:
		answer, err := s.createRecord(ctx, c, f, f.ID)
		if err != nil {
			return "", err
		}
		_, err = records.Transition(ctx, record.TransitionArgs{Caller: c, ID: f.ID, ToState: record.Resolved, ResolvedBy: answer})
		return f.ID, err
	case doState:
		_, err = records.Transition(ctx, record.TransitionArgs{Caller: c, ID: f.ID, ToState: f.To, Reason: f.Reason, ResolvedBy: f.By})
		return f.ID, err
	}
	return "", fault.Newf(fault.Invalid, "invalid_argument", "do is %.20q, but must be new, edit, state or answer", f.Do)
}

func (s *Site) createRecord(ctx context.Context, c record.Caller, f *recordForm, parent string) (string, error) {
	a := record.CreateArgs{Caller: c, Type: f.Type, Title: f.Title, Summary: f.Summary, Body: f.Body}
	if parent != "" {
		a.ParentID = &parent
	}
	created, err := s.cairn.Records().Create(ctx, a)
	return created.Record.ID, err
}

// updateRecord stores the texts if the user has seen the stored version. Otherwise it
// merges the changes of both bodies into the form.
func (s *Site) updateRecord(ctx context.Context, c record.Caller, f *recordForm, now record.Record) error {
	if now.Version == f.Version {
		out, err := s.cairn.Records().Update(ctx, record.UpdateArgs{Caller: c, ID: f.ID, Title: &f.Title, Summary: &f.Summary, Body: &f.Body})
		if err != nil || out.Conflict == nil {
			return err
		}
		now = out.Conflict.OtherVersion
	}
	base, err := s.cairn.Records().Get(ctx, record.GetRefArgs{Caller: record.Caller{ProjectID: c.ProjectID}, ID: f.ID, At: "tick:" + strconv.FormatInt(f.Tick, 10)})
	if err != nil {
		return err
	}
	history, err := s.cairn.Records().History(ctx, record.HistoryArgs{Caller: record.Caller{ProjectID: c.ProjectID}, ID: f.ID})
	if err != nil {
		return err
	}
	f.Theirs, f.Mine = &now, f.Body
	f.Version, f.Tick = now.Version, newestTick(history)
	if merged, ok := linediff.Merge(base.Body, now.Body, f.Body); ok {
		f.Body, f.Merged = merged, true
	}
	return nil
}

// staleRecord shows a form from an earlier login session again, with the user's input.
func (s *Site) staleRecord(r *http.Request, v Visitor, at place) (Response, error) {
	f := sentRecordForm(r, at.id)
	f.Problem, f.Hint = "Nothing was stored, because the form is older than your sign-in.", "Check it and send it again."
	return s.recordsWith(r, v, at, f)
}

// diffLine is one line of a unified diff.
type diffLine struct {
	Kind string // added, removed, place, same
	Mark string
	Text string
}

// diffLines parses a unified diff without its header.
func diffLines(unified string) (out []diffLine) {
	for line := range strings.Lines(unified) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "--- ") && len(out) == 0, strings.HasPrefix(line, "+++ ") && len(out) == 0:
		case strings.HasPrefix(line, "@@"):
			out = append(out, diffLine{"place", "", line})
		case strings.HasPrefix(line, "+"):
			out = append(out, diffLine{"added", "+", line[1:]})
		case strings.HasPrefix(line, "-"):
			out = append(out, diffLine{"removed", "−", line[1:]})
		default:
			out = append(out, diffLine{"same", "", strings.TrimPrefix(line, " ")})
		}
	}
	return out
}

// citedLine returns the first line number of a citation such as L3-L9, 0 for none.
func citedLine(lines string) int {
	digits := strings.TrimPrefix(lines, "L")
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
