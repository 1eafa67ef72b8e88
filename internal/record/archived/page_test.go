package archived

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// historyLines returns changes as the lines of an archive file.
func historyLines(t testing.TB, list []histories.Exported) string {
	var b strings.Builder
	for _, e := range list {
		text, err := historyLine{Exported: e}.text()
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

func FuzzPage(f *testing.F) {
	f.Add("Which queue?", "SQLite", "body\n", "s1", "R002", `{"a":1.50}`)
	f.Add("---json", "---\n\n---", "---json\n{}\n---\n\nx", "---", "../../x", `{"<":"\u2028"}`)
	f.Add("../../x", "a\r\n---\r\n\r\nb", "\r\n---\n\n", "two\nlines", "", "")
	f.Add(strings.Repeat("é", 200), "", "", "", "R1000", "{}")
	f.Add("con", "> quoted\n\n# heading", "\n---\n\n\n---\n\n", "s\x1b[31m", "R001", `{"state_reason":"x"}`)
	f.Fuzz(func(t *testing.T, title, summary, body, session, other, metadata string) {
		for _, text := range []string{title, summary, body, session, other} {
			if !utf8.ValidString(text) {
				t.Skip()
			}
		}
		e := &record.Entry{Tick: 9, CreatedNS: 1_700_000_000_001_000_000, ModifiedNS: 1_700_000_000_002_000_000, Record: record.Record{
			ID: "R007", Type: title, Title: title, Summary: summary, Body: body, State: record.Open, Version: 3,
			Created: 1_700_000_000_001_000_000, Modified: 1_700_000_000_002_000_000,
		}}
		if other != "" {
			e.ParentID, e.ResolvedBy, e.Related = &other, other, []string{other}
			e.Sources = []record.Cited{{Path: other, Lines: title, Hash: summary}}
			e.Cited = e.Sources
		}
		if object, err := record.DecodeObject(json.RawMessage(metadata)); err == nil && object != nil {
			e.Metadata = record.Canonical(json.RawMessage(metadata))
		}
		place := pagePath(7, title)
		if number, ok := numberOfPage(place); !ok || number != 7 || strings.Contains(place, "..") || len(place) > 110 ||
			strings.Trim(place, "abcdefghijklmnopqrstuvwxyz0123456789./_-R") != "" {
			t.Errorf("the path is %q", place)
		}
		text, err := pageOf(e, session, func(id string) string {
			if id == "R007" || id == "R002" {
				return place
			}
			return ""
		})
		if err != nil {
			t.Fatal(err)
		}
		got, by, err := parsePage(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if by != session || !reflect.DeepEqual(got, e) {
			t.Errorf("reads back as\n%+v by %q, want\n%+v by %q:\n%s", got, by, e, session, text)
		}
		if line := opLine(title); strings.ContainsAny(line, "\n\r\x1b\x00") || utf8.RuneCountInString(line) > maxOpLine {
			t.Errorf("the line is %q", line)
		}
	})
}

func FuzzParsePage(f *testing.F) {
	f.Add([]byte("---json\n{\"id\":\"R001\",\"version\":1}\n---\n\n# R001\n\n---\n\nbody"))
	f.Add([]byte("---json\n{}\n---\n\n"))
	f.Add([]byte("---json\n{\"id\":\"R001\",\"version\":1,\"metadata\":[1]}\n---\n\nx\n---\n\n\xff"))
	f.Fuzz(func(t *testing.T, content []byte) {
		e, session, err := parsePage(content)
		if err != nil {
			return
		}
		text, err := pageOf(e, session, func(string) string { return "records/x.md" })
		if err != nil {
			t.Fatal(err)
		}
		again, by, err := parsePage(text)
		if err != nil || by != session || !reflect.DeepEqual(again, e) {
			t.Errorf("%v: becomes\n%+v, want\n%+v", err, again, e)
		}
	})
}

// A valid line of history is equal after it is written again.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte(historyLines(f, []histories.Exported{{Kind: record.KindEvent, ID: "s1", Op: "put", Session: "s1", At: 1, Doc: json.RawMessage(`{"type":"x"}`)}})))
	f.Add([]byte(`{"kind":"record","id":"R001","op":"put","session":"s","at":1,"doc":null,"tick":4,"sha256":""}`))
	f.Add([]byte(strings.Replace(historyLines(f, []histories.Exported{{Kind: record.KindRecord, ID: "R001", Op: "put", Session: "s1", At: 1}}), "null", " null", 1)))
	f.Add([]byte(`{"kind":"record","doc":{}}`))
	f.Add([]byte("null\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, why := readLine(text)
		if why != nil {
			return
		}
		again, err := l.text()
		if err != nil {
			t.Fatal(err)
		}
		m, why := readLine(again)
		if why != nil || m.Exported.ID != l.ID || m.At != l.At || m.Tick != l.Tick || (m.Doc == nil) != (l.Doc == nil) {
			t.Errorf("%v: %s becomes %s", why, text, again)
		}
		var compact bytes.Buffer
		if l.Doc != nil && json.Compact(&compact, l.Doc) != nil {
			t.Errorf("its doc is %s", l.Doc)
		}
	})
}

func TestPathsOfTheArchiveReadBack(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"records/R001.md", "records/r001-x.md", "records/R1-x.md", "records/001/R001-x.md", "records/R1000-x.md", "records/R001-x.txt", "R001-x.md",
		"records/history/R001-x.md", "records/R0-x.md",
	} {
		if _, ok := numberOfPage(name); ok {
			t.Errorf("%s is a record's page", name)
		}
	}
	for _, name := range []string{
		"records/history/1/0001.jsonl", "records/history/0001/1.jsonl", "records/history/0000/0001.jsonl", "history/0001/0001.jsonl",
		"records/history/0001/0001.json", "records/history/0001/-001.jsonl", "records/history/+001/0001.jsonl", "records/history/0001/0001.jsonl/x",
	} {
		if _, _, ok := parseHistoryPath(name); ok {
			t.Errorf("%s is a file of history", name)
		}
	}
	for _, n := range []int64{0, 1, 999, 9999, 12345} {
		if folder, file, ok := parseHistoryPath(historyPath(n, n+1)); !ok || folder != n || file != n+1 {
			t.Errorf("%d reads back as %d, %d, %t", n, folder, file, ok)
		}
	}
}

// TestPagesAreRenderedWithoutReadingTheLog checks SQLite's query plans.
func TestPagesAreRenderedWithoutReadingTheLog(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Config{})
	scan := regexp.MustCompile(`^SCAN (c|t|s|k|o|a|changes|symbols|record_ticks)\b`)
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for query, args := range map[string][]any{
			selectPlaces: {"records/p", 0, 9, 1, 0, 9}, selectLine: {1}, selectFirstTitle: {"records/p", "R001", 9},
		} {
			steps := 0
			err := tx.Each(ctx, func(r *sql.Rows) error {
				var id, parent, unused int
				var detail string
				err := r.Scan(&id, &parent, &unused, &detail)
				if steps++; scan.MatchString(detail) {
					t.Errorf("%s:\n%s", detail, query)
				}
				return err
			}, "EXPLAIN QUERY PLAN "+query, args...)
			if err != nil || steps == 0 {
				t.Errorf("%d steps of %s", steps, query)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
