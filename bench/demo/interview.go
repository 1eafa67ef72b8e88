package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// plan is the start of the six questions. Each later question depends on earlier results.
type plan struct {
	question string           // the first question in words
	queries  []map[string]any // arguments of search, tried in turn until one has a result
	oldest   bool             // continue with the oldest hit instead of the newest
	serve    []string         // arguments of cairn serve

	lastQuestion string         // an additional question about all projects, "" for none
	lastQuery    map[string]any // its arguments of search
}

// interview is one run of the six questions.
type interview struct {
	*demo
	agent  *agent
	failed row    // result of the search
	first  string // question about that result
	file   string // file that was changed next
}

// interview asks a cairn server in dir the six questions of its MCP tools.
func (d *demo) interview(ctx context.Context, dir string, p plan) (err error) {
	d.heading("The agent asks over MCP: six tools, each question from the answer before")
	if err := d.flush(); err != nil {
		return err
	}
	a, err := d.home.newAgent(ctx, dir, p.serve...)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := a.close(); err == nil && cerr != nil {
			err = fmt.Errorf("cairn serve ended badly: %w", cerr)
		}
	}()
	i := &interview{demo: d, agent: a}
	for _, question := range []func(context.Context) error{
		func(ctx context.Context) error { return i.search(ctx, p) },
		i.observation, i.timeline, i.trace, i.history, i.recent,
		func(ctx context.Context) error { return i.elsewhere(ctx, p) },
	} {
		if err := errors.Join(question(ctx), d.flush()); err != nil {
			return err
		}
	}
	return nil
}

// ask prints a question, calls the tool and prints its cost.
func (i *interview) ask(ctx context.Context, question, tool string, args map[string]any, into any) error {
	took, err := i.agent.ask(ctx, tool, args, into)
	if err != nil {
		return err
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		list = append(list, fmt.Sprintf("%s=%v", name, args[name]))
	}
	i.line("%s", i.bold(question))
	i.line("  %s", i.dim(oneLine(i.home.short(tool+"("+strings.Join(list, ", ")+")  "+milliseconds(took)), columns-2)))
	return nil
}

func (i *interview) search(ctx context.Context, p plan) error {
	var hits []row
	for _, q := range p.queries {
		hits = nil
		if err := i.ask(ctx, p.question, "search", q, &hits); err != nil {
			return err
		}
		if len(hits) > 0 {
			break
		}
		i.line("  nothing\n")
	}
	if len(hits) == 0 {
		return errors.New("search found nothing to go on with")
	}
	for _, h := range hits {
		i.row("  ", h)
	}
	i.blank()
	slices.SortFunc(hits, func(a, b row) int { return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.ID, b.ID)) })
	i.failed, i.first = hits[len(hits)-1], "What exactly happened in #%d?"
	if p.oldest {
		i.failed, i.first = hits[0], "What exactly happened the first time, in #%d?"
	}
	return nil
}

func (i *interview) observation(ctx context.Context) error {
	var rows []row
	if err := i.ask(ctx, fmt.Sprintf(i.first, i.failed.ID), "get_observations", map[string]any{"ids": []int64{i.failed.ID}}, &rows); err != nil {
		return err
	}
	for _, r := range rows {
		i.failed = r
		i.line("  %s", oneLine(fmt.Sprintf("session %s of %s, %s%s", firstPart(r.SessionID), r.Project, r.ObsType, facts(r.Metadata)), columns-2))
		i.block("  │ ", i.home.short(r.Content), 9)
	}
	i.blank()
	return nil
}

func (i *interview) timeline(ctx context.Context) error {
	var t timeline
	args := map[string]any{"anchor": i.failed.ID, "before": 3, "after": 5}
	if err := i.ask(ctx, "What led to it, and what was done then?", "timeline", args, &t); err != nil {
		return err
	}
	for _, r := range t.Before {
		i.row("  ", r)
	}
	i.row("▸ ", t.Anchor)
	for _, r := range t.After {
		i.row("  ", r)
		if i.file == "" && (r.ObsType == "file_edit" || r.ObsType == "file_write") {
			i.file = r.FilePath
		}
	}
	i.blank()
	return nil
}

// maxPrompts is the maximum number of prompts shown of a long session.
const maxPrompts = 8

func (i *interview) trace(ctx context.Context) error {
	var t trace
	args := map[string]any{"session_id": i.failed.SessionID}
	if err := i.ask(ctx, "How did that session go on the whole?", "session_trace", args, &t); err != nil {
		return err
	}
	for n, p := range t.Prompts {
		for _, r := range p.Observations {
			if i.file == "" && r.FilePath != "" {
				i.file = r.FilePath
			}
		}
		switch {
		case n == maxPrompts:
			i.line("  … %d more", len(t.Prompts)-n)
		case n > maxPrompts:
		default:
			i.prompt(p.Source, p.Content, p.Observations)
		}
	}
	var came []string
	if f := t.Summary.Fixed; len(f) > 0 {
		came = append(came, "fixed "+f[0])
	}
	if c := t.Summary.Commits; len(c) > 0 {
		came = append(came, "committed "+c[0].Hash+" "+c[0].Message)
	}
	if f := t.Summary.Failing; len(f) > 0 {
		came = append(came, "left failing "+f[0])
	}
	if len(came) > 0 {
		i.block("  ", "digest: "+i.home.short(strings.Join(came, "; ")), 3)
	}
	i.blank()
	return nil
}

// prompt shows a message and the actions that followed it.
func (i *interview) prompt(source, text string, rows []row) {
	var kinds []string
	count := map[string]int{}
	for _, r := range rows {
		if count[r.ObsType]++; count[r.ObsType] == 1 {
			kinds = append(kinds, r.ObsType)
		}
	}
	for n, k := range kinds {
		if count[k] > 1 {
			kinds[n] = fmt.Sprintf("%s ×%d", k, count[k])
		}
	}
	if text == "" {
		i.line("  %-7s%s", source, oneLine(strings.Join(kinds, ", "), columns-9))
		return
	}
	i.line("  %-7s%s", source, quote(i.home.short(text), columns-9))
	if len(kinds) > 0 {
		i.line("         → %s", oneLine(strings.Join(kinds, ", "), columns-11))
	}
}

func (i *interview) history(ctx context.Context) error {
	if i.file == "" {
		i.line("%s\n  no file was touched around it\n", i.bold("Who touched the file?"))
		return nil
	}
	var h history
	name := i.file[strings.LastIndexAny(i.file, `/\`)+1:]
	args := map[string]any{"file_path": i.file}
	if err := i.ask(ctx, "Who touched "+name+", and why?", "file_history", args, &h); err != nil {
		return err
	}
	if len(h.Sessions) == 0 {
		i.line("  no session")
	}
	for _, s := range h.Sessions {
		var touches []string
		for _, t := range s.Touches {
			touches = append(touches, fmt.Sprintf("#%d %s", t.ID, t.ObsType))
		}
		i.line("  %s  %s", firstPart(s.SessionID), quote(i.home.short(s.Intent), columns-12))
		i.line("            %s", oneLine(strings.Join(touches, ", "), columns-12))
	}
	i.blank()
	return nil
}

func (i *interview) recent(ctx context.Context) error {
	var rows []row
	if err := i.ask(ctx, "And where do things stand now?", "recent_context", map[string]any{"limit": 8}, &rows); err != nil {
		return err
	}
	for _, r := range rows {
		i.row(fmt.Sprintf("  %.2f ", r.Score), r)
	}
	return nil
}

// previewLength is the number of characters of a preview in search results.
const previewLength = 120

// elsewhere asks about all projects if the plan has such a question.
func (i *interview) elsewhere(ctx context.Context, p plan) error {
	if p.lastQuestion == "" {
		return nil
	}
	i.blank()
	var hits []row
	if err := i.ask(ctx, p.lastQuestion, "search", p.lastQuery, &hits); err != nil {
		return err
	}
	for _, h := range hits {
		i.line("  #%d in %s, session %s, %s", h.ID, h.Project, firstPart(h.SessionID), h.ObsType)
		if utf8.RuneCountInString(h.Preview) == previewLength {
			h.Preview += "…"
		}
		i.block("  │ ", i.home.short(h.Preview), 0)
	}
	return nil
}

// row prints an observation on one line: its subject and time.
func (d *demo) row(lead string, r row) {
	text := r.Content
	if text == "" {
		text = r.Preview
	}
	if r.FilePath != "" && strings.HasSuffix(text, r.FilePath) && r.ObsType != "search" {
		text = cutLeft(d.home.short(r.FilePath), columns-len([]rune(lead))-30)
	}
	label := fmt.Sprintf("%s%-6s %s  %-15s ", lead, fmt.Sprintf("#%d", r.ID), clock(r.Timestamp), r.ObsType)
	text = oneLine(d.home.short(text), columns-len([]rune(label)))
	if strings.HasPrefix(lead, "▸") {
		text = d.bold(text)
	}
	d.line("%s%s", label, text)
}

// clock formats a time as the time of day, or as the date if it is older.
func clock(at int64) string {
	t := time.Unix(at, 0)
	if time.Since(t) < 12*time.Hour {
		return t.Format("15:04")
	}
	return t.Format("Jan 02")
}

// facts returns the short values of an observation's metadata.
func facts(metadata map[string]any) string {
	var b strings.Builder
	for _, name := range []string{"exit_code", "description"} {
		if v, ok := metadata[name]; ok {
			fmt.Fprintf(&b, ", %s: %v", strings.ReplaceAll(name, "_", " "), v)
		}
	}
	return b.String()
}

// firstPart returns the first part of a session id, which is enough to distinguish sessions
// here.
func firstPart(id string) string {
	first, _, _ := strings.Cut(id, "-")
	return oneLine(first, 12)
}
