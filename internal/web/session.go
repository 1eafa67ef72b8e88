package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
)

// Limits of a session page.
const (
	turnsPerPage   = 50
	actionsPerFold = 200
)

// sessionPage is one session: its prompts, its actions and their results.
type sessionPage struct {
	browse.Activity
	side
	Agent   string              `json:"agent,omitempty"`
	Running bool                `json:"running"`
	Digest  *observation.Digest `json:"digest"` // nil before the first turn ends
	Turns   []turn              `json:"turns"`
	First   int                 `json:"first_turn"` // ordinal of the first shown turn, from 1
	Last    int                 `json:"last_turn"`
	Of      int                 `json:"turns_in_all"`
	Earlier string              `json:"-"` // URLs of the neighbouring pages, "" for none
	Later   string              `json:"-"`
	Before  string              `json:"earlier_session,omitempty"` // ids of the project's previous and next session by start time
	After   string              `json:"later_session,omitempty"`
	Prompts int                 `json:"prompts"`
	Axis    *axis               `json:"-"`
	Bar     bar                 `json:"-"`
	Columns []column            `json:"-"`
	Fixes   map[int64]bool      `json:"-"` // actions in which a previously failed command passed

	commits []browse.TraceRow // actions that created commits, of all turns
}

// turn is a prompt with the actions that followed it and the agent's replies.
type turn struct {
	N       int               `json:"n"`
	At      int64             `json:"at"`
	Prompt  string            `json:"prompt,omitempty"` // "" for actions before the first prompt
	Kinds   []kindCount       `json:"actions_by_kind"`
	Failed  int               `json:"failed"`
	Actions []browse.TraceRow `json:"actions"`
	More    int               `json:"more_actions,omitempty"`
	Answers []answer          `json:"answers"`
	To      int64             `json:"to"`
}

type answer struct {
	At   int64  `json:"at"`
	Text string `json:"text"`
}

type kindCount struct {
	Kind string `json:"kind"`
	N    int    `json:"n"`
}

func sessionPath(id string) string { return "/sessions/" + url.PathEscape(id) }

func (s *Site) session(r *http.Request, v Visitor, at place) (Response, error) {
	ctx, now := r.Context(), s.now().Unix()
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return Response{}, err
	}
	trace, err := browse.TraceSession(ctx, j, at.key, nil, nil)
	if err != nil {
		return Response{}, err
	}
	p := &sessionPage{Turns: turnsOf(trace), commits: commitRows(joinTurns(trace))}
	if err := s.relative(ctx, trace.Project, p.Turns); err != nil {
		return Response{}, err
	}
	if p.Activity, err = s.activityOf(ctx, trace); err != nil {
		return Response{}, err
	}
	var d observation.Digest
	if json.Unmarshal(trace.Summary, &d) == nil && d.Source != "" {
		p.Digest = &d
	}
	names, err := s.agents(ctx, []string{p.SessionID})
	if err != nil {
		return Response{}, err
	}
	p.Agent, p.Running = strings.Join(names[trace.SessionID], ", "), isRunning(p.Activity, now)
	for _, t := range p.Turns {
		if t.Prompt != "" {
			p.Prompts++
		}
	}
	if p.Before, p.After, err = s.neighbours(ctx, p.Activity); err != nil {
		return Response{}, err
	}
	if p.side, err = s.readSide(ctx, p.Activity); err != nil {
		return Response{}, err
	}
	p.Fixes = fixes(p.Turns)
	p.Axis = newAxis(p.StartedAt, max(p.LastSeen, p.StartedAt+60), p.Working)
	p.Bar = p.Axis.bar(p.Activity, p.Agent, now)
	p.Columns = columns(p.Axis, p.Turns)
	if err := p.cut(r, trace.SessionID); err != nil {
		return Response{}, err
	}
	return s.show(r, v, "session", cmp.Or(p.Asked, "Session "+trace.SessionID), p)
}

// commitRows returns the actions that created commits.
func commitRows(turns []turn) (list []browse.TraceRow) {
	for _, t := range turns {
		for _, row := range t.Actions {
			if row.ObsType == "git_commit" {
				list = append(list, row)
			}
		}
	}
	return list
}

// CommitRow returns the id of the action that created a commit. It compares the beginning
// of the commit message with the command. It returns 0 if no action matches.
func (p *sessionPage) CommitRow(c observation.Commit) int64 {
	const compared = 40 // characters, because a row's preview is truncated
	message := cutWords(c.Message, compared)
	for _, row := range p.commits {
		if message != "" && strings.Contains(row.ContentPreview, strings.TrimSuffix(message, "…")) {
			return row.ID
		}
	}
	return 0
}

// relative shortens the paths of files in a working tree of the project.
func (s *Site) relative(ctx context.Context, id string, turns []turn) error {
	all, err := s.cairn.Projects(ctx)
	for _, q := range all {
		if q.ID != id {
			continue
		}
		for _, t := range turns {
			for i := range t.Actions {
				if path := t.Actions[i].FilePath; path != nil {
					t.Actions[i].FilePath = relativeTo(q.Checkouts, *path)
				}
			}
		}
	}
	return err
}

// activityOf returns the activity of a session over its whole duration.
func (s *Site) activityOf(ctx context.Context, t browse.Trace) (browse.Activity, error) {
	list, _, err := s.activity(ctx, browse.ActivityArgs{Project: t.Project, Since: 0, Until: 1 << 62, Limit: 1, Session: t.SessionID})
	if err != nil {
		return browse.Activity{}, err
	}
	if len(list) == 0 {
		return browse.Activity{SessionID: t.SessionID, Project: t.Project, StartedAt: t.StartedAt, LastSeen: t.StartedAt}, nil
	}
	return list[0], nil
}

// neighbours returns the sessions of the same project that began before and after a
// session.
func (s *Site) neighbours(ctx context.Context, a browse.Activity) (before, after string, err error) {
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return "", "", err
	}
	return browse.Neighbours(ctx, j, a.SessionID)
}

// cut keeps one page of the turns: the page that the URL names, or the last.
func (p *sessionPage) cut(r *http.Request, id string) error {
	p.Of = len(p.Turns)
	first := max(p.Of-turnsPerPage, 0)
	if given := r.URL.Query().Get("from"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 {
			return fault.Newf(fault.Invalid, "invalid_argument", "from is %.20q, but must be the number of a turn", given)
		}
		first = min(n-1, max(p.Of-1, 0))
	}
	last := min(first+turnsPerPage, p.Of)
	p.First, p.Last, p.Turns = first+1, last, p.Turns[first:last]
	if first > 0 {
		p.Earlier = sessionPath(id) + "?from=" + strconv.Itoa(max(first-turnsPerPage, 0)+1)
	}
	if last < p.Of {
		p.Later = sessionPath(id) + "?from=" + strconv.Itoa(last+1)
	}
	return nil
}

// turnsOf joins the prompts of a trace with the replies that follow them. It limits the
// actions to the number that a page shows.
func turnsOf(t browse.Trace) []turn {
	turns := joinTurns(t)
	for i := range turns {
		turns[i].finish()
	}
	return turns
}

// joinTurns is turnsOf without a limit on actions.
func joinTurns(t browse.Trace) []turn {
	turns := []turn{}
	for _, p := range t.Prompts {
		text := ""
		if p.Content != nil {
			text = *p.Content
		}
		if p.Source == "agent" && len(turns) > 0 {
			last := &turns[len(turns)-1]
			last.add(p.Observations)
			last.Answers = append(last.Answers, answer{p.Timestamp, text})
			last.To = max(last.To, p.Timestamp)
			continue
		}
		n := turn{N: len(turns) + 1, At: p.Timestamp, To: p.Timestamp, Prompt: text, Kinds: []kindCount{}, Actions: []browse.TraceRow{}, Answers: []answer{}}
		if p.Source == "agent" {
			n.Prompt, n.Answers = "", []answer{{p.Timestamp, text}}
		}
		n.add(p.Observations)
		turns = append(turns, n)
	}
	turns = slices.DeleteFunc(turns, func(t turn) bool { return t.Prompt == "" && len(t.Actions)+len(t.Answers) == 0 })
	for i := range turns {
		turns[i].N = i + 1
	}
	return turns
}

func (t *turn) add(rows []browse.TraceRow) {
	for _, row := range rows {
		if strings.HasPrefix(row.ObsType, "session_") {
			continue
		}
		t.Actions = append(t.Actions, row)
		t.To = max(t.To, row.Timestamp)
		if row.Failed {
			t.Failed++
		}
		kind := kindOf(row.ObsType)
		i := slices.IndexFunc(t.Kinds, func(k kindCount) bool { return k.Kind == kind })
		if i < 0 {
			t.Kinds = append(t.Kinds, kindCount{Kind: kind})
			i = len(t.Kinds) - 1
		}
		t.Kinds[i].N++
	}
}

func (t *turn) finish() {
	slices.SortStableFunc(t.Kinds, func(a, b kindCount) int { return cmp.Compare(b.N, a.N) })
	if n := len(t.Actions) - actionsPerFold; n > 0 {
		t.Actions, t.More = t.Actions[:actionsPerFold], n
	}
}

// reasonOf returns the output of a failed call from its row's preview, or the line that
// gives the reason.
func reasonOf(preview, line string) string {
	_, rest, _ := strings.Cut(preview, "\n")
	if strings.Contains(rest, line) {
		return rest
	}
	return line
}

// kindOf returns the word for a type of row.
func kindOf(obsType string) string {
	words := map[string]string{
		"file_read": "read", "file_write": "write", "file_edit": "edit", "search": "search", "command": "run", "command_error": "run",
		"git_commit": "commit", "git_push": "push", "github": "GitHub", "mcp_call": "tool", "task_spawn": "subagent",
		"web_fetch": "fetch", "web_search": "web search", "tool_other": "other", "marker": "note", "user_prompt": "prompt", "agent_message": "answer",
		"session_start": "start", "session_end": "end", "session_compact": "compaction",
	}
	return cmp.Or(words[obsType], obsType)
}

// typeName returns the label of a type of row in a selection list.
func typeName(obsType string) string {
	if obsType == "command_error" {
		return "failed run"
	}
	return kindOf(obsType)
}

func (p *sessionPage) live() bool { return p.Running && p.Later == "" }
