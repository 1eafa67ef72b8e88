package sessionstart

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/likely"
	"cairn/internal/oneline"
	"cairn/internal/shell"
	"cairn/internal/store"
)

const (
	digestColumns = `s.key, s.summary, ifnull((SELECT o.id FROM prompt_rows p
    JOIN observation_rows o ON o.prompt_id = p.id AND o.obs_type = 'agent_message'
    WHERE p.session_key = s.key AND p.source = 'agent' AND p.agent_id IS NULL
      AND ifnull(o.metadata ->> '$.kind', '') != 'compact_summary'
    ORDER BY p.timestamp DESC, p.id DESC LIMIT 1), 0)`

	selectLastDigest = `SELECT ` + digestColumns + ` FROM sessions s
WHERE s.project_id = ?1 AND s.summary IS NOT NULL AND s.key != ?2 AND s.last_seen > ?3 ORDER BY s.last_seen DESC, s.key DESC LIMIT 1`

	selectBranchDigest = `SELECT ` + digestColumns + ` FROM session_branches b CROSS JOIN sessions s ON s.key = b.session_key
WHERE b.branch = ?4 AND s.project_id = ?1 AND s.summary IS NOT NULL AND s.key != ?2 AND s.last_seen > ?3
ORDER BY s.last_seen DESC, s.key DESC LIMIT 1`

	selectOwnDigest = `SELECT ` + digestColumns + ` FROM sessions s WHERE s.key = ? AND s.summary IS NOT NULL`

	selectBranchesOf = `SELECT branch FROM session_branches WHERE session_key = ? ORDER BY branch LIMIT 2`

	selectSessionFailures = `SELECT ifnull(metadata ->> '$.command', ''), substr(ifnull(metadata ->> '$.error', ''), 1, 4096), metadata ->> '$.interrupted'
FROM observation_rows WHERE session_key = ? AND obs_type = 'command_error' ORDER BY timestamp DESC, id DESC LIMIT 30`
)

// lastSession is the session whose digest the context shows.
type lastSession struct {
	key     int64
	message int64 // id of its last message, 0 if none
	digest  observation.Digest
}

// readDigest renders the newest digest of the branch, else of the project. The lines show what
// the user asked, what was done, what still fails and how the session ended. After a compaction
// it uses the session's own digest and shows only failures.
func (b *contextBuilder) readDigest(ctx context.Context, tx *store.Tx) error {
	s, here, err := b.findLast(ctx, tx)
	if err != nil || s.key == 0 || s.digest.Actions == 0 {
		return err
	}
	failing, err := b.failing(ctx, tx, &s)
	if err != nil {
		return err
	}
	if b.span.own {
		for _, f := range failing {
			b.digest = append(b.digest, "- Still failing: "+f)
		}
		return nil
	}
	b.last = s.message
	if !here {
		branches, err := b.branchesOf(ctx, tx, s.key)
		if err != nil {
			return err
		}
		if branches != "" {
			b.digest = append(b.digest, "- Branch: "+branches)
		}
	}
	d := s.digest
	d.FilesEdited = slices.DeleteFunc(d.FilesEdited, func(f string) bool { return observation.IsOutside(f, b.project.Root) })
	var names []string
	for _, file := range d.FilesEdited {
		if name := oneline.Cell(path.Base(file), ledger.MaxCell); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		names[0] = oneline.Path(observation.Below(d.FilesEdited[0], b.project.Root), ledger.MaxCell)
	}
	d.FilesEdited = names
	b.digest = append(b.digest, digestLines(d, failing)...)
	ending, err := b.ending(ctx, tx, s)
	if err != nil || ending == "" {
		return err
	}
	b.digest = append(b.digest, "- Ended with: "+ending)
	return nil
}

// findLast finds the last session. here reports whether it worked on the checked-out branch; it
// is also true if no branch is known.
func (b *contextBuilder) findLast(ctx context.Context, tx *store.Tx) (s lastSession, here bool, err error) {
	var text string
	read := func(query string, args ...any) error {
		return tx.Each(ctx, func(r *sql.Rows) error { return r.Scan(&s.key, &text, &s.message) }, query, args...)
	}
	var since int64
	if b.span.resumed {
		since = b.span.since
	}
	switch {
	case b.span.own:
		here, err = true, read(selectOwnDigest, b.span.session)
	case b.branch != "":
		here, err = true, read(selectBranchDigest, b.project.ID, b.span.session, since, b.branch)
	}
	if err == nil && s.key == 0 && !b.span.own {
		here, err = b.branch == "", read(selectLastDigest, b.project.ID, b.span.session, since)
	}
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &s.digest)
	}
	return s, here, err
}

func (b *contextBuilder) branchesOf(ctx context.Context, tx *store.Tx, session int64) (string, error) {
	var names []string
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		names = append(names, oneline.Cell(name, ledger.MaxCell))
		return err
	}, selectBranchesOf, session)
	return strings.Join(names, ", "), err
}

// maxFailing is the maximum number of failures of the last session shown.
const maxFailing = 2

// failing lists commands that leave work to do and whose last run failed, each with its reason.
func (b *contextBuilder) failing(ctx context.Context, tx *store.Tx, s *lastSession) (lines []string, err error) {
	open := slices.DeleteFunc(slices.Clone(s.digest.Failing), func(c string) bool { return !shell.LeavesWork(c) })
	if len(open) == 0 {
		return nil, nil
	}
	seen := map[string]bool{}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var f shownRow
		var stopped sql.NullBool
		err := r.Scan(&f.facts.Command, &f.facts.Error, &stopped)
		f.root, f.facts.Interrupted = b.project.Root, stopped.Bool
		key := oneline.Cut(shell.Normal(f.facts.Command), observation.MaxIntent)
		if err != nil || seen[key] || len(lines) == maxFailing || !slices.Contains(open, key) {
			return err
		}
		if seen[key] = true; !f.interrupted() && !f.lostItsWay() {
			lines = append(lines, reasonCell(shell.WithoutPlumbing(f.relative(key)), f.relative(observation.Reason(f.facts.Command, f.facts.Error))))
		}
		return nil
	}, selectSessionFailures, s.key)
	return lines, err
}

const (
	maxAsked  = 100 // characters of the last session's intent
	maxEnding = 140 // characters of its last message
)

// ending returns one sentence that describes how the last session ended.
func (b *contextBuilder) ending(ctx context.Context, tx *store.Tx, s lastSession) (string, error) {
	text := s.digest.NextSteps
	if s.message != 0 {
		message, ok, err := observation.ContentOf(ctx, tx, s.message)
		if err != nil {
			return "", err
		}
		if ok {
			text = message
		}
	}
	return oneline.Cell(cutClause(strings.ReplaceAll(endSentence(text), "**", ""), maxEnding), maxEnding), nil
}

// cutClause shortens a sentence of more than n characters at the end of a clause. It leaves the
// sentence unchanged if no clause ends in the second half of the first n characters.
func cutClause(s string, n int) string {
	head := oneline.Cut(s, n-1)
	if head == s || utf8.RuneCountInString(s) <= n {
		return s
	}
	end := max(strings.LastIndex(head, ", "), strings.LastIndex(head, "; "), strings.LastIndex(head, ": "))
	if end < len(head)/2 {
		return s
	}
	return head[:end] + "…"
}

// digestLines renders a digest in at most three lines.
func digestLines(d observation.Digest, failing []string) []string {
	var out []string
	work := []string{}
	if len(d.FilesEdited) > 0 {
		work = append(work, "edited "+strings.Join(firstFew(d.FilesEdited, 3), ", "))
	}
	if len(d.Commits) > 0 {
		work = append(work, "committed "+oneline.Cell(d.Commits[0].Hash+" "+d.Commits[0].Message, ledger.MaxCell))
	}
	if d.Intent != "" {
		out = append(out, "- Asked: "+oneline.Cell(oneline.Join(d.Intent), maxAsked))
	}
	if len(work) > 0 {
		out = append(out, "- Done: "+strings.Join(work, "; "))
	}
	if len(failing) > 0 {
		out = append(out, "- Still failing: "+strings.Join(failing, "; "))
	}
	return out
}

func firstFew(list []string, n int) []string {
	if len(list) <= n+1 {
		return list
	}
	return append(slices.Clone(list[:n]), fmt.Sprintf("and %d more", len(list)-n))
}

// endSentence returns the sentence of a message that best describes how a turn ended. That is a
// question at the end, else the first sentence of four words or more, else the last sentence.
// If the first candidate is too long to show whole, the next sentence is preferred if it fits.
// Code, headings and tables are ignored.
func endSentence(message string) string {
	all := sentences(message)
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	if strings.HasSuffix(last, "?") {
		return last
	}
	first := ""
	for _, s := range all {
		switch {
		case len(strings.Fields(s)) < 4 || announcesNext(s):
		case first == "" && fitsEnding(s):
			return s
		case first == "":
			first = s
		case fitsEnding(s) && strings.ContainsAny(s[len(s)-1:], ".!"):
			return s
		default:
			return first
		}
	}
	return cmp.Or(first, last)
}

// fitsEnding reports whether a sentence is short enough to show whole.
func fitsEnding(s string) bool {
	return utf8.RuneCountInString(strings.ReplaceAll(s, "**", "")) <= maxEnding
}

// announcesNext reports whether a sentence only introduces the text after it.
func announcesNext(s string) bool {
	lower := strings.ToLower(s)
	return strings.HasSuffix(strings.TrimRight(s, "*"), ":") || strings.HasPrefix(lower, "let me ") || strings.HasPrefix(lower, "now let me ") || strings.HasPrefix(lower, "i'll ") ||
		strings.HasPrefix(lower, "now i ")
}

// sentences splits Markdown prose into sentences.
func sentences(text string) (out []string) {
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		if code || line == "" || strings.ContainsAny(line[:1], "#|>") || strings.Trim(line, "-=*_ ") == "" {
			continue
		}
		line = strings.TrimLeft(line, "-* ")
		for line != "" {
			end := sentenceEnd(line)
			if s := strings.TrimSpace(line[:end]); s != "" {
				out = append(out, s)
			}
			line = strings.TrimSpace(line[end:])
		}
	}
	return out
}

// sentenceEnd returns the offset after the first sentence of a line.
func sentenceEnd(line string) int {
	for i, r := range line {
		switch r {
		case '.', '!', '?':
			if rest := line[i+1:]; rest == "" || rest[0] == ' ' {
				if next, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " ")); !unicode.IsLower(next) {
					return i + 1
				}
			}
		case '。', '！', '？':
			return i + utf8.RuneLen(r)
		}
	}
	return len(line)
}

const (
	intentColumns = `o.id, o.timestamp, substr(o.content, 1, 1000), ifnull(s.summary ->> '$.intent', ''), (SELECT count(*) FROM observation_rows a
    WHERE a.prompt_id = o.prompt_id AND a.obs_type NOT IN ('user_prompt', 'agent_message'))
FROM observation_rows o JOIN sessions s ON s.key = o.session_key`

	intentHasActions = `EXISTS (SELECT 1 FROM observation_rows a
    WHERE a.prompt_id = o.prompt_id AND a.obs_type NOT IN ('user_prompt', 'agent_message'))
ORDER BY o.timestamp DESC, o.id DESC LIMIT 10`

	selectIntents = `SELECT ` + intentColumns + `
WHERE o.project_key = ? AND o.obs_type = 'user_prompt' AND ` + intentHasActions

	selectOwnIntents = `SELECT ` + intentColumns + `
WHERE o.session_key = ? AND o.obs_type = 'user_prompt' AND ` + intentHasActions

	selectIntentsSince = `SELECT ` + intentColumns + `
WHERE o.project_key = ? AND o.obs_type = 'user_prompt' AND o.timestamp > ? AND o.session_key != ? AND ` + intentHasActions
)

// minIntentWords is the minimum number of meaningful words in a prompt that is shown as its own
// intent.
const minIntentWords = 4

// intent is a recent user prompt and the number of actions it caused.
type intent struct {
	id, at  int64
	text    string
	actions int
	also    []int64
}

// readIntents renders the ten newest prompts that caused an action. A prompt of fewer than four
// meaningful words is shown as its session's intent. Equal prompts share a line. A plain
// context does neither.
func (b *contextBuilder) readIntents(ctx context.Context, tx *store.Tx) error {
	query, args := selectIntents, []any{b.project.Key}
	switch {
	case b.span.own:
		query, args = selectOwnIntents, []any{b.span.session}
	case b.span.resumed:
		query, args = selectIntentsSince, []any{b.project.Key, b.span.since, b.span.session}
	}
	var list []*intent
	byText := map[string]*intent{}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var n intent
		var session string
		err := r.Scan(&n.id, &n.at, &n.text, &session, &n.actions)
		if !b.limits.Plain && session != "" && meaningfulWords(n.text) < minIntentWords {
			n.text = session
		}
		n.text = oneline.Quoted(n.text, ledger.MaxCell)
		if same := byText[n.text]; same != nil && !b.limits.Plain {
			same.actions += n.actions
			same.also = append(same.also, n.id)
			return err
		}
		byText[n.text] = &n
		list = append(list, &n)
		return err
	}, query, args...)
	for _, n := range list {
		plural := "s"
		if n.actions == 1 {
			plural = ""
		}
		line := fmt.Sprintf("- [%s] %s → %d action%s", oneline.Ago(b.now, n.at), n.text, n.actions, plural)
		b.intents = append(b.intents, ledger.Line{ID: n.id, Also: n.also, Text: line})
	}
	return err
}

// meaningfulWords counts the distinct meaningful words of a text. Stop words and words of mere
// consent do not count. Each letter of a script without spaces counts as a word.
func meaningfulWords(text string) (n int) {
	for w := range likely.WordSet(oneline.Cut(text, 400)) {
		if !isConsent(w) && strings.IndexFunc(w, unicode.IsLetter) >= 0 {
			n++
		}
	}
	for _, r := range oneline.Cut(text, 400) {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			n++
		}
	}
	return n
}

// isConsent reports whether a word only tells the agent to continue. The word must have the
// form that likely.WordSet returns.
func isConsent(w string) bool {
	const consent = " yes yeah yep no ok okay sur sure plea continu go ahead do it again next try more thank thanks good great" +
		" perfect nice fine right sound done stop proceed pleas hmm oh well make mak "
	return strings.Contains(consent, " "+w+" ")
}

// readLikely finds the files that the session will likely need. likelyFiles later removes files
// that a row of the tables is about.
func (b *contextBuilder) readLikely(ctx context.Context, tx *store.Tx) (err error) {
	b.maxLikely = likely.MaxLikelyAtStart
	b.likely, err = likely.Rank(ctx, tx, likely.Args{
		Project: b.project, Branch: b.branch, Limit: likely.MaxLikelyAtStart + len(b.local) + len(b.pinned),
	}, b.keep, nil)
	return err
}
