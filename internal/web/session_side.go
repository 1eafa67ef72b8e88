package web

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/service"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/ledger"
	"cairn/internal/record"
)

// Limits of the side column of a session page.
const (
	maxInjected       = 300
	maxSessionMail    = 20
	maxSessionRecords = 20
)

// side is the column next to the conversation of a session.
type side struct {
	Injected     []injectedSection       `json:"injected"`
	Tokens       int                     `json:"injected_tokens"`
	UsedPercent  int                     `json:"injected_used_percent"` // percentage of the injected tokens
	Mail         []agents.SessionMessage `json:"mail"`
	Records      []sessionRecord         `json:"records"`
	RecordsMore  int                     `json:"more_records,omitempty"`
	InjectedMore bool                    `json:"more_injected,omitempty"` // earlier items exist
}

// injectedSection contains the items injected under one section.
type injectedSection struct {
	Name   string            `json:"section"`
	Tokens int               `json:"tokens"`
	Used   int               `json:"used"` // number of used items
	Items  []ledger.Injected `json:"items"`
}

// sessionRecord is a record that the session changed or loaded.
type sessionRecord struct {
	record.Ref
	Changed bool `json:"changed"` // false if only loaded
}

// readSide collects the items that cairn injected into the session, and its mail and
// records.
func (s *Site) readSide(ctx context.Context, a browse.Activity) (out side, err error) {
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return out, err
	}
	items, err := ledger.InjectedInto(ctx, j, a.SessionID, maxInjected)
	if err != nil {
		return out, err
	}
	out.InjectedMore = len(items) == maxInjected
	out.addInjected(items)
	out.Mail, err = ask(ctx, s, func(ctx context.Context, o *service.Mail, _ mail.Caller) ([]agents.SessionMessage, error) {
		return o.MailOfSession(ctx, a.SessionID, maxSessionMail)
	})
	if err != nil {
		return out, err
	}
	touched, err := s.cairn.Records().OfSession(ctx, a.Project, a.SessionID)
	if err != nil {
		return out, err
	}
	out.RecordsMore = max(len(touched)-maxSessionRecords, 0)
	out.Records = []sessionRecord{}
	for _, t := range touched[:len(touched)-out.RecordsMore] {
		ref, err := s.cairn.Records().GetRef(ctx, record.GetRefArgs{Caller: record.Caller{ProjectID: a.Project}, ID: t.ID})
		if err != nil {
			return out, err
		}
		out.Records = append(out.Records, sessionRecord{ref, t.Changed})
	}
	return out, nil
}

// addInjected groups items by section, largest section first.
func (p *side) addInjected(items []ledger.Injected) {
	p.Injected = []injectedSection{}
	used := 0
	for _, item := range items {
		i := slices.IndexFunc(p.Injected, func(s injectedSection) bool { return s.Name == item.Section })
		if i < 0 {
			i = len(p.Injected)
			p.Injected = append(p.Injected, injectedSection{Name: item.Section})
		}
		section := &p.Injected[i]
		section.Items = append(section.Items, item)
		section.Tokens += item.Tokens
		p.Tokens += item.Tokens
		if item.Used != "" {
			section.Used++
			used += item.Tokens
		}
	}
	slices.SortStableFunc(p.Injected, func(a, b injectedSection) int { return cmp.Compare(b.Tokens, a.Tokens) })
	if p.Tokens > 0 {
		p.UsedPercent = 100 * used / p.Tokens
	}
}

// fixes returns the actions in which a command passed that had failed before in the
// session.
func fixes(turns []turn) map[int64]bool {
	failing, out := map[string]bool{}, map[int64]bool{}
	for _, t := range turns {
		for _, row := range t.Actions {
			command, _, _ := strings.Cut(row.ContentPreview, "\n")
			switch {
			case row.ObsType == "command_error" || row.Failed:
				failing[command] = true
			case row.ObsType == "command" && failing[command]:
				out[row.ID] = true
				delete(failing, command)
			}
		}
	}
	return out
}

// column is one bar of the session's activity strip. Its height shows the number of
// actions.
type column struct{ X, Y, Width, Height float64 }

// columns counts the actions of a session along its axis.
func columns(x *axis, turns []turn) []column {
	const n, height = 80, 26.0
	var counts [n]int
	most := 1
	for _, t := range turns {
		for _, row := range t.Actions {
			i := min(int(x.at(row.Timestamp)*n/100), n-1)
			counts[i]++
			most = max(most, counts[i])
		}
	}
	var out []column
	for i, c := range counts {
		if c > 0 {
			h := max(height*float64(c)/float64(most), 2)
			out = append(out, column{float64(i) * 100 / n, 38 - h, 100.0/n - 0.15, h})
		}
	}
	return out
}

// sectionName returns the label of a section of injected text.
func sectionName(section string) string {
	names := map[string]string{
		"digest": "last session", "intents": "recent intents", "local": "recent here", "likely": "likely files", "cross": "other projects",
		"related": "related to the prompt", "file": "before an edit", "command": "before a command",
	}
	return cmp.Or(names[section], section)
}
