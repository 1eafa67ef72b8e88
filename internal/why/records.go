package why

import (
	"context"
	"slices"
	"strings"

	"cairn/internal/citation"
	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/record/commands"
)

// Record is a record that is related to the line or file.
type Record struct {
	record.Ref
	Because []string `json:"because"` // reasons: cites …, named in commit …, changed or active in session …
}

// maxRecords is the maximum number of listed records. Records that cite the code come
// first.
const maxRecords = 20

// findRecords adds the records that cite the line or file, that commits name, and that the
// sessions changed or had active.
func (q *question) findRecords(ctx context.Context, a Args) error {
	if q.Records == nil {
		return nil
	}
	own, err := q.projectOf(ctx, a, q.file.place)
	if err != nil {
		return err
	}
	caller := record.Caller{ProjectID: a.ProjectID, Project: a.Project, Place: q.file.place}
	found := &recordList{book: q.Records, caller: caller}
	tree, known := citation.Open(q.file.place.Root)
	if err := q.citing(ctx, found, tree, known); err != nil {
		return err
	}
	for _, c := range q.named() {
		if err := found.add(ctx, c.id, "named in commit "+c.hash[:12]); err != nil {
			return err
		}
	}
	for _, session := range q.answer.Sessions {
		touched, err := q.Records.Touched(ctx, own, session.SessionID)
		if err != nil {
			return err
		}
		for _, t := range touched {
			how := "active in session "
			if t.Changed {
				how = "changed in session "
			}
			if err := found.add(ctx, t.ID, how+session.SessionID); err != nil {
				return err
			}
		}
	}
	var all Shown
	for i := range found.list {
		all.refs = append(all.refs, &found.list[i].Ref)
	}
	if err := all.judge(ctx, tree, known); err != nil {
		return err
	}
	q.answer.Records = append(q.answer.Records, found.list...)
	if len(found.list) == 0 {
		q.missing("records", "no record cites it, is named in its commit or belongs to its session")
	}
	return nil
}

// recordList collects records without duplicates.
type recordList struct {
	book   *commands.Commands
	caller record.Caller
	list   []Record
}

// add adds a reason why a record is related. It ignores a record that does not exist.
func (l *recordList) add(ctx context.Context, id, because string) error {
	ref, err := l.book.GetRef(ctx, record.GetRefArgs{Caller: l.caller, ID: id})
	if fault.HasCode(err, record.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.list, func(r Record) bool { return r.ID == ref.ID })
	switch {
	case i >= 0 && !slices.Contains(l.list[i].Because, because):
		l.list[i].Because = append(l.list[i].Because, because)
	case i < 0 && len(l.list) < maxRecords:
		l.list = append(l.list, Record{ref, []string{because}})
	}
	return nil
}

// citing adds the records whose bodies cite the line by its current number. For a whole
// file it adds the records that cite any part of it.
func (q *question) citing(ctx context.Context, found *recordList, tree citation.Tree, known bool) error {
	if q.file.rel == "" {
		return nil
	}
	records, err := q.citingRecords(ctx, found.caller, tree, known)
	if err != nil {
		return err
	}
	for _, r := range records {
		for _, c := range r.Citations {
			if c.Path != q.file.rel || q.answer.Line > 0 && !covers(c, q.answer.Line) {
				continue
			}
			because := "cites " + c.Path + "#" + c.Lines
			switch {
			case c.NowAt != "":
				because += ", now " + c.NowAt
			case c.Drifted != nil && *c.Drifted:
				because += ", drifted"
			}
			if err := found.add(ctx, r.ID, because); err != nil {
				return err
			}
		}
	}
	return nil
}

// citingRecords returns the records whose bodies cite the file. If the working tree is
// known, their citations are compared with it.
func (q *question) citingRecords(ctx context.Context, caller record.Caller, tree citation.Tree, known bool) ([]record.Record, error) {
	records, err := q.Records.Citing(ctx, caller, q.file.rel)
	if err != nil {
		return nil, err
	}
	var all Shown
	for i := range records {
		all.Record(&records[i])
	}
	return records, all.judge(ctx, tree, known)
}

// covers reports whether a citation includes a line of the current file. A drifted
// citation covers the lines that it was created for.
func covers(c record.Citation, line int) bool {
	lines := c.Lines
	if c.NowAt != "" {
		lines = c.NowAt
	}
	first, last, ok := citation.ParseLines(lines)
	return ok && first <= line && line <= last
}

// namedRecord is a record that a commit's message names.
type namedRecord struct{ id, hash string }

// named returns the records that commit messages name by ids such as R007.
func (q *question) named() []namedRecord {
	commits := q.answer.Commits
	if q.answer.Commit != nil {
		commits = []Commit{*q.answer.Commit}
	}
	var out []namedRecord
	for _, c := range commits {
		words := strings.FieldsFunc(c.message, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		})
		for _, word := range words {
			digits := strings.TrimPrefix(word, "R")
			if digits != word && len(digits) >= 3 && len(digits) <= 9 && strings.Trim(digits, "0123456789") == "" {
				out = append(out, namedRecord{word, c.Hash})
			}
		}
	}
	return out[:min(len(out), maxRecords)]
}
