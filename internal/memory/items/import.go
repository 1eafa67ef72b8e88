package items

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// Imported is the result of an import.
type Imported struct {
	Added   int           `json:"added"`
	Known   int           `json:"known"` // lines whose entry existed already, or was deleted
	Refused []RefusedLine `json:"refused"`
}

// RefusedLine is a line that was not imported.
type RefusedLine struct {
	Line    int    `json:"line"` // from 1
	Message string `json:"message"`
}

// importLine contains the fields of an exported entry that an import reads.
type importLine struct {
	RawEntry     string            `json:"rawEntry"`
	Summary      string            `json:"summary"`
	Tags         map[string]string `json:"tags"`
	Metadata     json.RawMessage   `json:"metadata"`
	SessionID    string            `json:"sessionId"`
	CapturedTime memory.Time       `json:"capturedTime"`
	CreationTime memory.Time       `json:"creationTime"`
}

// importChunk is the number of lines per transaction. maxLine limits the bytes of a line.
const (
	importChunk = 200
	maxLine     = 1 << 20
)

// Import adds entries from JSON lines in the form of Export to a memory. The key of an entry is
// the SHA-256 of its line, so that an import is idempotent. Entries get new ids and times but keep
// their capturedTime. Invalid lines are reported and skipped. progress, which may be nil, is called
// with the number of lines read. Import requires the level Admin.
func (b *Items) Import(ctx context.Context, c memory.Caller, memoryID string, in io.Reader, progress func(lines int)) (Imported, error) {
	out := Imported{Refused: []RefusedLine{}}
	memoryID, err := memory.MemoryArg(memoryID)
	if err != nil {
		return out, err
	}
	shard, err := b.ShardKey(ctx, c, memoryID)
	if err != nil {
		return out, err
	}
	lines := newLines(in)
	for done := false; !done; {
		var chunk []numbered
		if chunk, done, err = lines.next(importChunk); err != nil {
			return out, err
		}
		var part Imported
		err := b.Job(ctx, shard, func(ctx context.Context, tx *store.Tx) (err error) {
			part, err = b.importChunk(ctx, tx, c, memoryID, chunk)
			return err
		})
		if err != nil {
			return out, err
		}
		out.Added, out.Known, out.Refused = out.Added+part.Added, out.Known+part.Known, append(out.Refused, part.Refused...)
		if progress != nil {
			progress(lines.count)
		}
	}
	return out, nil
}

func (b *Items) importChunk(ctx context.Context, tx *store.Tx, c memory.Caller, memoryID string, chunk []numbered) (out Imported, err error) {
	s, err := b.Enter(ctx, tx, c, true)
	if err == nil {
		err = s.OpenToWrite(ctx, memoryID, func() error { return s.Caller.May(memory.Admin) })
	}
	if err != nil {
		return out, err
	}
	d := b.NewDocuments()
	d.call = s
	for _, l := range chunk {
		e, why := b.parseLine(l.text)
		if why != nil {
			out.Refused = append(out.Refused, RefusedLine{l.number, why.Error()})
			continue
		}
		sum := sha256.Sum256(l.text)
		e.Key = memory.HubKey("POST", s.Path("entries"), hex.EncodeToString(sum[:]))
		if err := d.Apply(ctx, tx, &Item{Kind: memory.KindEntry, Memory: s.Memory.MemoryID, parsed: e}); err != nil {
			return out, err
		}
	}
	n := d.Counts()
	out.Added, out.Known = n.Entries, n.Known+n.Deleted
	return out, nil
}

// parseLine parses and checks one line of an import.
func (b *Items) parseLine(text []byte) (*contents.EntryDoc, error) {
	if err := rules.CheckJSON("line", text); err != nil {
		return nil, err
	}
	var l importLine
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, rules.Invalid("line", "the line is not an entry as JSON")
	}
	session, err := rules.SessionArg(l.SessionID, false)
	if err != nil {
		return nil, err
	}
	a := contents.NewEntry{RawEntry: l.RawEntry, Summary: l.Summary, Tags: l.Tags, Metadata: l.Metadata, SessionID: session}
	if err := a.Validate(); err != nil {
		return nil, err
	}
	if _, err := rules.BodyHash(contents.Redacted(b.Kernel, a)); err != nil {
		return nil, err
	}
	return &contents.EntryDoc{
		RawEntry: a.RawEntry, Summary: a.Summary, Tags: a.Tags, Metadata: a.Metadata, SessionID: session,
		CapturedTime: cmp.Or(l.CapturedTime, l.CreationTime),
	}, nil
}

// numbered is a line with its number.
type numbered struct {
	number int
	text   []byte
}

// lines reads lines of at most maxLine bytes.
type lines struct {
	in    *bufio.Scanner
	count int
}

func newLines(in io.Reader) *lines {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &lines{in: s}
}

// next reads up to n lines that are not blank. done is true after the last.
func (l *lines) next(n int) (out []numbered, done bool, err error) {
	for len(out) < n {
		if !l.in.Scan() {
			if errors.Is(l.in.Err(), bufio.ErrTooLong) {
				return out, true, rules.Invalid("line", "line %d exceeds %d bytes", l.count+1, maxLine)
			}
			return out, true, l.in.Err()
		}
		l.count++
		if text := bytes.TrimSpace(l.in.Bytes()); len(text) > 0 {
			out = append(out, numbered{l.count, bytes.Clone(text)})
		}
	}
	return out, false, nil
}
