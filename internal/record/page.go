package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// File is a file of the archive: a path below the project's folder, with slashes,
// and what it holds.
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

// pagePath is the path of a record's page, by its number and its first title:
// records/R001-title.md, from the 1,000th record on in 001/, 002/ … below. A record
// keeps it whatever its title becomes, so that one file has its whole history.
func pagePath(number int64, title string) string {
	return pagesFolder + shelf(number) + formatID(number) + "-" + fileWord(title) + ".md"
}

// shelf is the folder below a folder for what is the n-th of it: "" for the first
// 999, then 001/ and so on (mail §10.1).
func shelf(n int64) string {
	if n < perShelf {
		return ""
	}
	return fmt.Sprintf("%03d/", n/perShelf)
}

// fileWord is a title as part of a file's name: letters, digits, dots, _ and - of
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

// numberOfPage is the number of the record whose page a path is; ok is false for
// any other file.
func numberOfPage(name string) (number int64, ok bool) {
	folder, file := path.Split(name)
	id, rest, _ := strings.Cut(file, "-")
	number, ok = numberOf(id)
	return number, ok && strings.HasSuffix(rest, ".md") && folder == pagesFolder+shelf(number)
}

// head is the front matter of a record's page. The order of its fields is that of
// the file.
type head struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Summary    string          `json:"summary"`
	State      State           `json:"state"`
	Version    int             `json:"version"`
	Tick       int64           `json:"tick"`    // of the version
	Session    string          `json:"session"` // that stored it
	ParentID   *string         `json:"parent_id"`
	ResolvedBy string          `json:"resolved_by,omitempty"`
	Related    []string        `json:"related,omitempty"`
	Created    Time            `json:"created"`
	Modified   Time            `json:"modified"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Cited      []Cited         `json:"cited,omitempty"`
}

// page is a record for people: front matter in JSON, its title and where it stands,
// a line of three dashes, and the body byte for byte. Links lead to the pages of the
// records that it names, of which place is the path, "" for none.
func (e *Entry) page(session string, place func(id string) string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(headBegin)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(head{
		ID: e.ID, Type: e.Type, Title: e.Title, Summary: e.Summary, State: e.State, Version: e.Version, Tick: e.Tick, Session: session,
		ParentID: e.ParentID, ResolvedBy: e.ResolvedBy, Related: e.Related, Created: Time(e.CreatedNS), Modified: Time(e.ModifiedNS),
		Metadata: e.Metadata, Cited: e.Sources,
	})
	if err != nil {
		return nil, err
	}
	b.Truncate(b.Len() - 1) // headEnd brings the line's end
	b.WriteString(headEnd)
	b.WriteString(strings.Join(e.sections(session, place), "\n\n"))
	b.WriteString("\n" + headEnd + e.Body)
	return b.Bytes(), nil
}

// sections are what stands above a body. Each line begins with a mark of its own, so
// that none is three dashes.
func (e *Entry) sections(session string, place func(id string) string) []string {
	list := []string{
		"# " + e.ID + " " + oneLine(e.Title),
		fmt.Sprintf("**%s** %s, version %d at tick %d, %s by %s", e.State, oneLine(e.Type), e.Version, e.Tick, Time(e.ModifiedNS), oneLine(session)),
	}
	if summary := strings.TrimSpace(e.Summary); summary != "" {
		var lines []string
		for text := range strings.Lines(summary) {
			lines = append(lines, strings.TrimRight("> "+oneLine(text), " "))
		}
		list = append(list, strings.Join(lines, "\n"))
	}
	if relations := e.relations(place); len(relations) > 0 {
		list = append(list, strings.Join(relations, "\n"))
	}
	return list
}

// relations are a list of the records and the code that a version names.
func (e *Entry) relations(place func(id string) string) (list []string) {
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

// parsePage reads a record's page back: the version that it tells, as far as a page
// tells one, and the session that stored it. Times come to the millisecond.
func parsePage(content []byte) (e *Entry, session string, err error) {
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
		return nil, "", fmt.Errorf("no body that is text follows its heading")
	}
	var h head
	if err := json.Unmarshal(front, &h); err != nil {
		return nil, "", fmt.Errorf("its front matter is not the JSON of a record: %w", err)
	}
	if _, ok := numberOf(h.ID); !ok || h.Version < 1 {
		return nil, "", fmt.Errorf("its front matter lacks an id or a version")
	}
	e = &Entry{Tick: h.Tick, CreatedNS: int64(h.Created), ModifiedNS: int64(h.Modified), Sources: h.Cited, Record: Record{
		ID: h.ID, Type: h.Type, Title: h.Title, Summary: h.Summary, Body: string(body), State: h.State, ParentID: h.ParentID, Created: h.Created,
		Modified: h.Modified, ResolvedBy: h.ResolvedBy, Related: h.Related, Metadata: canonical(h.Metadata), Version: h.Version, Cited: h.Cited,
	}}
	return e, h.Session, nil
}

const maxOpLine = 200

// oneLine is a text as one line without what a terminal could take for more than
// text.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)), " ")
}

// opLine is a line of at most 200 characters for a commit.
func opLine(text string) string {
	text = oneLine(text)
	if utf8.RuneCountInString(text) <= maxOpLine {
		return text
	}
	runes := []rune(text)[:maxOpLine-2]
	return strings.TrimRight(string(runes), " ") + " …"
}

// A project's changes stand below records/history in folders of 1,000 ticks, a tick
// with all that follows it up to the next: 0001 from the beginning on, 0002 from tick
// 1,000 on. A file there ends after 1,000 changes, or before the one with which its
// documents would exceed 256 KiB, so that a commit stays cheap.
const (
	ticksPerFolder = 1000
	maxFileLines   = 1000
	maxFileBytes   = 256 << 10
)

// historyPath is the path of a file of changes; folder and file count from 0.
func historyPath(folder, file int64) string {
	return fmt.Sprintf("%s%04d/%04d.jsonl", historyFolder, folder+1, file+1)
}

// parseHistoryPath is the reverse of historyPath; ok is false for any other path.
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
