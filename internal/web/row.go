package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
)

// maxRowText is the maximum number of bytes shown of an event's text.
const maxRowText = 60_000

// rowPage is one recorded event in full, with its prompt and its output.
type rowPage struct {
	observation.Observation
	Did       string  `json:"-"`
	Agent     string  `json:"agent,omitempty"`
	Prompt    string  `json:"prompt,omitempty"` // the prompt that led to it, "" for none
	Turn      int     `json:"turn,omitempty"`   // ordinal of its turn in the session
	Facts     rowMeta `json:"-"`
	Cut       bool    `json:"cut,omitempty"` // Content is only the beginning
	KeptUntil int64   `json:"output_kept_until,omitempty"`
	Path      string  `json:"-"` // the file relative to its working tree, "" for none
}

// rowMeta is the metadata of a row.
type rowMeta struct {
	Error        string   `json:"error"`
	ExitCode     *int64   `json:"exit_code"`
	DurationMS   *int64   `json:"duration_ms"`
	Branch       string   `json:"branch"`
	CommitHash   string   `json:"commit_hash"`
	Insertions   *int64   `json:"insertions"`
	Deletions    *int64   `json:"deletions"`
	FilesChanged *int64   `json:"files_changed"`
	NewFiles     []string `json:"new_files"`
}

func rowPath(id int64) string { return "/rows/" + strconv.FormatInt(id, 10) }

// row shows one event.
func (s *Site) row(r *http.Request, v Visitor, at place) (Response, error) {
	ctx := r.Context()
	id, err := number("event", at.key)
	if err != nil {
		return Response{}, err
	}
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return Response{}, err
	}
	rows, err := browse.Get(ctx, j, []int64{id})
	if err != nil {
		return Response{}, err
	}
	if len(rows) == 0 {
		return Response{}, fault.Newf(fault.NotFound, "not_found", "there is no event %d", id).WithHint("it may have expired or been purged")
	}
	p := &rowPage{Observation: rows[0]}
	_ = json.Unmarshal(p.Metadata, &p.Facts) // null and fields of other types leave Facts unchanged
	if days := j.Config.OutputDays; days > 0 && p.Output == "" && isOutputKind(p.ObsType) {
		p.KeptUntil = p.Timestamp + int64(days)*24*3600
	}
	if err := s.behind(r, j, p); err != nil {
		return Response{}, err
	}
	if len(p.Content) > maxRowText {
		p.Content, p.Cut = strings.ToValidUTF8(p.Content[:maxRowText], ""), true
	}
	p.Did = cmp.Or(p.Path, cutWords(p.Content, 120), kindOf(p.ObsType))
	return s.show(r, v, "row", kindOf(p.ObsType)+" "+p.Did, p)
}

// behind finds the prompt, the agent and the file's relative path.
func (s *Site) behind(r *http.Request, j *observation.Service, p *rowPage) error {
	ctx := r.Context()
	trace, err := browse.TraceSession(ctx, j, p.SessionID, nil, nil)
	if err != nil {
		return err
	}
	for _, t := range joinTurns(trace) {
		for _, row := range t.Actions {
			if row.ID == p.ID {
				p.Prompt, p.Turn = t.Prompt, t.N
			}
		}
	}
	names, err := s.agents(ctx, []string{p.SessionID})
	if err != nil {
		return err
	}
	p.Agent = strings.Join(names[p.SessionID], ", ")
	if p.FilePath == nil {
		return nil
	}
	all, err := s.cairn.Projects(ctx)
	for _, q := range all {
		if q.ID == p.Project {
			p.Path = *relativeTo(q.Checkouts, *p.FilePath)
		}
	}
	return err
}

// isOutputKind reports whether rows of a type store the output of their call.
func isOutputKind(obsType string) bool {
	switch obsType {
	case "command", "command_error", "git_commit", "git_push", "github", "mcp_call":
		return true
	}
	return false
}

// Gone reports whether the output was deleted because its retention expired.
func (p *rowPage) Gone(now int64) bool { return p.KeptUntil > 0 && p.KeptUntil < now }

// Took returns the duration of the call, "" if unknown.
func (p *rowPage) Took() string {
	if p.Facts.DurationMS == nil {
		return ""
	}
	return (time.Duration(*p.Facts.DurationMS) * time.Millisecond).String()
}

// InSession returns the URL of the event in its session's conversation.
func (p *rowPage) InSession() string {
	address := sessionPath(p.SessionID)
	if p.Turn > 0 {
		address += "?from=" + strconv.Itoa(p.Turn)
	}
	return address + "#row-" + strconv.FormatInt(p.ID, 10)
}
