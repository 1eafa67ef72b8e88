package capture

import (
	"strings"
	"unicode/utf8"

	"cairn/internal/editlines"
	"cairn/internal/observation"
	"cairn/internal/redact"
	"cairn/internal/shell"
	"cairn/internal/tooloutput"
)

// The limits of a row's fields, in characters (observations §5). Where the contract sets no
// limit, these keep a row below 16 KiB.
const (
	maxErrorText = 500 // in the content
	errorHead    = 1000
	errorTail    = 1000
	maxPrompt    = 2000
	messageHead  = 1200
	messageTail  = 800
	maxTask      = 200
	maxWeb       = 500
	maxMCP       = 300
	maxParam     = 200
	maxParams    = 1000
	maxQuestion  = 200
	maxPattern   = 500

	maxFact        = 200  // a name, word or line in the metadata
	maxNewFileText = 2000 // all paths of new files together
)

// redactMargin is how far past its limit a field is read, so that a secret that begins before
// the limit is complete (observations §7).
const redactMargin = 64 << 10

// draft is one row to be inserted, redacted and cut.
type draft struct {
	Type    string // obs_type
	Tool    string // tool_name, "" for none
	CallID  string
	Part    int
	Content string
	Path    string // as the call reported it, redacted; "" for none
	Meta    observation.Metadata
	Failed  bool
	printed string              // output of the call, not redacted; see printedBy
	output  *observation.Output // stored form of printed, nil for none
	lines   editlines.Lines
}

// searchable returns the text that a search for the row matches.
func (d *draft) searchable() string { return observation.SearchableText(d.Content, d.Path, d.Meta) }

// drafts returns the rows of an event (observations §5): one row, or one per file for a patch.
// It returns none for Ignored and Touch events, blank prompts and messages, and cairn's own
// tools and commands. Every text is redacted by f before it is cut, and is valid UTF-8.
func drafts(e *observation.Event, f *redact.Filter) []draft {
	switch e.Kind {
	case observation.SessionStart, observation.SessionEnd:
		return []draft{sessionDraft(e, f)}
	case observation.Prompt, observation.Message:
		if strings.TrimSpace(e.Text) != "" {
			return []draft{textDraft(e, f)}
		}
	case observation.Tool:
		rows := make([]draft, 0, len(e.Calls))
		for i := range e.Calls {
			if d, ok := callDraft(e, &e.Calls[i], f); ok {
				rows = append(rows, d)
			}
		}
		return rows
	}
	return nil
}

func sessionDraft(e *observation.Event, f *redact.Filter) draft {
	d := drafter{filter: f}
	d.Content = d.head(e.Text, maxFact)
	switch {
	case e.Kind == observation.SessionEnd:
		d.Type = observation.TypeSessionEnd
		return d.finish(e)
	case e.Text == "compact":
		d.Type = observation.TypeCompact
	default:
		d.Type = observation.TypeSessionStart
	}
	d.set("model", e.Model, maxFact)
	return d.finish(e)
}

func textDraft(e *observation.Event, f *redact.Filter) draft {
	d := drafter{filter: f}
	if e.Kind == observation.Prompt {
		d.Type, d.Content = observation.TypePrompt, d.head(e.Text, maxPrompt)
		return d.finish(e)
	}
	d.Type, d.Content = observation.TypeMessage, d.headTail(e.Text, messageHead, messageTail)
	d.set("kind", e.Role, maxFact)
	return d.finish(e)
}

// callDraft returns the row of one tool call, and false for a call of cairn itself.
func callDraft(e *observation.Event, c *observation.Call, f *redact.Filter) (draft, bool) {
	d := drafter{filter: f, draft: draft{CallID: c.ID, Part: c.Part, Failed: c.Failed}}
	d.Tool = d.head(c.Tool, maxFact)
	d.Path = d.head(c.Path, observation.MaxPath)
	if c.DurationMS > 0 {
		d.put("duration_ms", c.DurationMS)
	}
	d.flag("failed", c.Failed)
	d.flag("interrupted", c.Interrupted)
	if c.Action == observation.Shell {
		use := shell.Read(c.Command, c.Tool)
		if use.OnlyCairn {
			return draft{}, false
		}
		d.shell(c, use)
	} else {
		if observation.OwnTool(c) {
			return draft{}, false
		}
		if c.Failed {
			if text := d.headTail(tooloutput.StripEscapes(failureText(c)), errorHead, errorTail); strings.TrimSpace(text) != "" {
				d.put("error", text)
			}
		}
		d.tool(c)
	}
	if strings.TrimSpace(d.Content) == "" {
		d.Content = d.Tool
	}
	d.printed = printedBy(c)
	return d.finish(e), true
}

// shell fills in the row of a command line.
func (d *drafter) shell(c *observation.Call, use shell.Use) {
	command := d.head(c.Command, observation.MaxCommand)
	d.Content = command
	d.set("description", c.Description, maxFact)
	d.flag("background", c.Background)
	d.set("note", c.Note, maxFact)
	if c.Failed {
		d.Type = observation.TypeCommandError
		d.count("exit_code", c.ExitCode)
		if strings.TrimSpace(command) == "" {
			d.Content = d.Tool
		} else {
			d.put("command", command)
		}
		d.failure(c)
		return
	}
	d.Type = observation.TypeOfCommand(use)
	if c.Interrupted { // the output does not show whether it pushed or committed
		d.Type = observation.TypeCommand
	}
	if use.Commit {
		d.commit(tooloutput.ReadCommit(tooloutput.StripEscapes(c.Stdout)))
	}
	if use.Push { // with 2>&1, or if a host joins the streams, the text is on standard output
		d.push(tooloutput.ReadPush(tooloutput.StripEscapes(c.Stderr + "\n" + c.Stdout)))
	}
}

func (d *drafter) commit(facts tooloutput.Commit) {
	d.set("branch", facts.Branch, maxFact)
	d.set("commit_hash", facts.Hash, maxFact)
	d.set("commit_message", facts.Message, observation.MaxCommand)
	d.count("files_changed", facts.Files)
	d.count("insertions", facts.Insertions)
	d.count("deletions", facts.Deletions)
	room := maxNewFileText
	var created []string
	for _, path := range facts.Created {
		path = d.head(path, min(maxFact, room))
		if path == "" {
			break
		}
		created = append(created, path)
		room -= utf8.RuneCountInString(path)
	}
	if len(created) > 0 {
		d.put("new_files", created)
	}
}

func (d *drafter) push(facts tooloutput.Push) {
	d.set("remote_url", facts.Remote, maxWeb)
	d.set("hash_range", facts.HashRange, maxFact)
	d.set("branch", facts.Branch, maxFact)
}

// tool fills in the row of any other call. Its caller replaces blank content by the tool's name.
func (d *drafter) tool(c *observation.Call) {
	d.Type = observation.TypeOther
	switch c.Action {
	case observation.Read:
		d.Type, d.Content = observation.TypeRead, d.Path
	case observation.Write:
		d.Type, d.Content = observation.TypeWrite, d.Path
		d.lines = linesOf(c, d.filter)
		d.flag("created", c.Created)
	case observation.Edit:
		d.Type, d.Content = observation.TypeEdit, d.Path
		d.lines = linesOf(c, d.filter)
		d.flag("replace_all", c.ReplaceAll)
		d.flag("deleted", c.Deleted)
	case observation.Search:
		d.search(c)
	case observation.Spawn:
		d.Type, d.Content = observation.TypeSpawn, d.head(firstText(c.Description, c.Prompt), maxTask)
		d.set("subagent_type", c.SubagentType, maxFact)
		d.set("agent_id", c.SpawnedID, maxFact)
	case observation.Fetch:
		d.Type, d.Content = observation.TypeFetch, d.head(c.URL, maxWeb)
	case observation.WebSearch:
		d.Type, d.Content = observation.TypeWebSearch, d.head(c.Query, maxWeb)
	case observation.MCP:
		d.mcp(c)
	case observation.Ask:
		d.Content = d.head(c.Question, maxQuestion)
	case observation.Skill:
		if strings.TrimSpace(c.SkillName) != "" {
			d.Content = "Skill " + d.head(c.SkillName, maxFact)
		}
	}
}

func firstText(a, b string) string {
	if strings.TrimSpace(a) != "" {
		return a
	}
	return b
}

func (d *drafter) search(c *observation.Call) {
	d.Type, d.Content = observation.TypeSearch, d.head(c.Pattern, maxPattern)
	switch {
	case d.Path == "":
	case d.Content == "":
		d.Content = d.Path
	default:
		d.Content += " in " + d.Path
	}
	d.set("mode", c.Mode, maxFact)
	d.count("num_files", c.NumFiles)
}

// drafter fills in a draft and records whether anything was redacted.
type drafter struct {
	draft
	filter  *redact.Filter
	changed bool
}

// head returns the first limit characters of the redacted text.
func (d *drafter) head(s string, limit int) string {
	s, changed := d.filter.Head(observation.Clean(s), limit)
	d.changed = d.changed || changed
	return s
}

// headTail returns the redacted text. A longer text is reduced to its first head and last tail
// characters, without a gap mark, because the limits have no space for one.
func (d *drafter) headTail(s string, head, tail int) string {
	s = observation.Clean(s)
	text, changed := d.filter.HeadTail(s, head, tail)
	d.changed = d.changed || changed
	if utf8.RuneCountInString(text) <= head+tail {
		return text
	}
	first, _ := d.filter.Head(s, head)
	last, _ := d.filter.HeadTail(s, 0, tail)
	return first + strings.TrimPrefix(last, redact.Gap)
}

func (d *drafter) put(key string, v any) {
	if d.Meta == nil {
		d.Meta = observation.Metadata{}
	}
	d.Meta[key] = v
}

// set stores a text in the metadata unless it is blank.
func (d *drafter) set(key, s string, limit int) {
	if s = d.head(s, limit); strings.TrimSpace(s) != "" {
		d.put(key, s)
	}
}

func (d *drafter) flag(key string, on bool) {
	if on {
		d.put(key, true)
	}
}

func (d *drafter) count(key string, n *int) {
	if n != nil {
		d.put(key, *n)
	}
}

// finish adds the metadata that applies to all rows and returns the draft.
func (d *drafter) finish(e *observation.Event) draft {
	d.flag("imported", e.Imported)
	d.flag("redacted", d.changed)
	return d.draft
}
