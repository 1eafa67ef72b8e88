package archived

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/record"
)

// File is a file of the archive: its path below the project's folder, with slashes, and
// its content.
type File struct {
	Path    string
	Content []byte
}

const (
	pagesFolder   = "records/"
	historyFolder = pagesFolder + "history/"

	perShelf    = 1000
	maxNameWord = 80

	headBegin = "---json\n"
	headEnd   = "\n---\n\n"
)

// pagePath returns the path of a record's page, by its number and its first title:
// records/R001-title.md. From the 1,000th record on, it is in a subfolder 001/, 002/ and
// so on. The path stays when the title changes, so that one file has the whole history.
func pagePath(number int64, title string) string {
	return pagesFolder + bucketDir(number) + record.FormatID(number) + "-" + fileWord(title) + ".md"
}

// bucketDir returns the subfolder for the n-th entry of a folder: "" for the first 999,
// then 001/ and so on (mail §10.1).
func bucketDir(n int64) string {
	if n < perShelf {
		return ""
	}
	return fmt.Sprintf("%03d/", n/perShelf)
}

// fileWord returns a title as part of a file's name: letters, digits, dots, _ and - of
// ASCII, in lower case.
func fileWord(title string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(title) {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._-", r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(r)
		if b.Len() >= maxNameWord {
			break
		}
	}
	word := b.String()
	word = strings.Trim(word[:min(len(word), maxNameWord)], "-._")
	if word == "" {
		return "record"
	}
	return word
}

// numberOfPage returns the record number of a page's path. ok is false for any other
// file.
func numberOfPage(name string) (number int64, ok bool) {
	folder, file := path.Split(name)
	id, rest, _ := strings.Cut(file, "-")
	number, ok = record.NumberOf(id)
	return number, ok && strings.HasSuffix(rest, ".md") && folder == pagesFolder+bucketDir(number)
}

// head is the front matter of a record's page. The order of its fields is that of
// the file.
type head struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Summary    string          `json:"summary"`
	State      record.State    `json:"state"`
	Version    int             `json:"version"`
	Tick       int64           `json:"tick"`    // of the version
	Session    string          `json:"session"` // session that stored the version
	ParentID   *string         `json:"parent_id"`
	ResolvedBy string          `json:"resolved_by,omitempty"`
	Related    []string        `json:"related,omitempty"`
	Created    record.Time     `json:"created"`
	Modified   record.Time     `json:"modified"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Cited      []record.Cited  `json:"cited,omitempty"`
}

// pageOf renders a record as Markdown: front matter in JSON, the title and state, a line of
// three dashes, and the body byte for byte. It links to the pages of related records.
// place returns the path of a record's page, "" for none.
func pageOf(e *record.Entry, session string, place func(id string) string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(headBegin)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(head{
		ID: e.ID, Type: e.Type, Title: e.Title, Summary: e.Summary, State: e.State, Version: e.Version, Tick: e.Tick, Session: session,
		ParentID: e.ParentID, ResolvedBy: e.ResolvedBy, Related: e.Related, Created: record.Time(e.CreatedNS), Modified: record.Time(e.ModifiedNS),
		Metadata: e.Metadata, Cited: e.Sources,
	})
	if err != nil {
		return nil, err
	}
	b.Truncate(b.Len() - 1) // headEnd contains the line end
	b.WriteString(headEnd)
	b.WriteString(strings.Join(sections(e, session, place), "\n\n"))
	b.WriteString("\n" + headEnd + e.Body)
	return b.Bytes(), nil
}

// sections returns the lines above a body. Each begins with a mark, so that no line is
// three dashes.
func sections(e *record.Entry, session string, place func(id string) string) []string {
	list := []string{
		"# " + e.ID + " " + oneLine(e.Title),
		fmt.Sprintf("**%s** %s, version %d at tick %d, %s by %s", e.State, oneLine(e.Type), e.Version, e.Tick, record.Time(e.ModifiedNS), oneLine(session)),
	}
	if summary := strings.TrimSpace(e.Summary); summary != "" {
		var lines []string
		for text := range strings.Lines(summary) {
			lines = append(lines, strings.TrimRight("> "+oneLine(text), " "))
		}
		list = append(list, strings.Join(lines, "\n"))
	}
	if relations := relations(e, place); len(relations) > 0 {
		list = append(list, strings.Join(relations, "\n"))
	}
	return list
}

// relations returns a list of the records and the code that a version refers to.
func relations(e *record.Entry, place func(id string) string) (list []string) {
	up := strings.Repeat("../", strings.Count(place(e.ID), "/")-1)
	link := func(id string) string {
		if to := place(id); to != "" {
			return "[" + id + "](" + up + strings.TrimPrefix(to, pagesFolder) + ")"
		}
		return oneLine(id)
	}
	if e.ParentID != nil {
		list = append(list, "- Part of "+link(*e.ParentID))
	}
	if e.ResolvedBy != "" {
		list = append(list, "- Resolved by "+link(e.ResolvedBy))
	}
	if len(e.Related) > 0 {
		var links []string
		for _, id := range e.Related {
			links = append(links, link(id))
		}
		list = append(list, "- Related to "+strings.Join(links, ", "))
	}
	var about struct {
		Reason string `json:"state_reason"`
	}
	if json.Unmarshal(e.Metadata, &about) == nil && about.Reason != "" {
		list = append(list, "- Because: "+oneLine(about.Reason))
	}
	for _, c := range e.Sources {
		list = append(list, "- Cites "+oneLine(c.Path+"#"+c.Lines))
	}
	return list
}

// parsePage parses a record's page. It returns the version, as far as a page contains it,
// and the session that stored it. Times have millisecond precision.
func parsePage(content []byte) (e *record.Entry, session string, err error) {
	rest, ok := bytes.CutPrefix(content, []byte(headBegin))
	if !ok {
		return nil, "", fmt.Errorf("it does not begin with %q", strings.TrimSpace(headBegin))
	}
	front, rest, ok := bytes.Cut(rest, []byte(headEnd))
	if !ok {
		return nil, "", fmt.Errorf("its front matter does not end")
	}
	_, body, ok := bytes.Cut(rest, []byte(headEnd))
	if !ok || !utf8.Valid(body) {
		return nil, "", fmt.Errorf("its body is missing or not text")
	}
	var h head
	if err := json.Unmarshal(front, &h); err != nil {
		return nil, "", fmt.Errorf("its front matter is not the JSON of a record: %w", err)
	}
	if _, ok := record.NumberOf(h.ID); !ok || h.Version < 1 {
		return nil, "", fmt.Errorf("its front matter lacks an id or a version")
	}
	e = &record.Entry{Tick: h.Tick, CreatedNS: int64(h.Created), ModifiedNS: int64(h.Modified), Sources: h.Cited, Record: record.Record{
		ID: h.ID, Type: h.Type, Title: h.Title, Summary: h.Summary, Body: string(body), State: h.State, ParentID: h.ParentID, Created: h.Created,
		Modified: h.Modified, ResolvedBy: h.ResolvedBy, Related: h.Related, Metadata: record.Canonical(h.Metadata), Version: h.Version, Cited: h.Cited,
	}}
	return e, h.Session, nil
}

const maxOpLine = 200

// oneLine returns a text as one line without terminal control characters.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)), " ")
}

// opLine returns a line of at most 200 characters for a commit.
func opLine(text string) string {
	text = oneLine(text)
	if utf8.RuneCountInString(text) <= maxOpLine {
		return text
	}
	runes := []rune(text)[:maxOpLine-2]
	return strings.TrimRight(string(runes), " ") + " …"
}

// A project's changes are below records/history in folders of 1,000 ticks: 0001 from the
// beginning, 0002 from tick 1,000. Changes without a tick are with the tick before them.
// A file ends after 1,000 changes, or before its documents would exceed 256 KiB, so that
// a commit stays cheap.
const (
	ticksPerFolder = 1000
	maxFileLines   = 1000
	maxFileBytes   = 256 << 10
)

// historyPath returns the path of a file of changes; folder and file count from 0.
func historyPath(folder, file int64) string {
	return fmt.Sprintf("%s%04d/%04d.jsonl", historyFolder, folder+1, file+1)
}

// parseHistoryPath returns the reverse of historyPath; ok is false for any other path.
func parseHistoryPath(name string) (folder, file int64, ok bool) {
	in, number, _ := strings.Cut(strings.TrimPrefix(name, historyFolder), "/")
	folder, err := strconv.ParseInt(in, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	file, err = strconv.ParseInt(strings.TrimSuffix(number, ".jsonl"), 10, 64)
	folder, file = folder-1, file-1
	return folder, file, err == nil && folder >= 0 && file >= 0 && historyPath(folder, file) == name
}
