package observation

import (
	"context"

	"cairn/internal/redact"
	"cairn/internal/store"
)

// linesOf returns the lines that a call wrote, without secrets.
func linesOf(c *Call, f *redact.Filter) (out editLines) {
	if c.Failed || len(c.Pieces) == 0 {
		return out
	}
	if c.Whole {
		out.flags |= linesWhole
	}
	if c.Created {
		out.flags |= linesNew
	}
	if c.Partial {
		out.flags |= linesPartial
	}
	room := maxLineText
	for _, p := range c.Pieces {
		text := p.New
		if len(text) > room {
			text, out.flags = text[:room], out.flags|linesCut
		}
		room -= len(text)
		text, _ = f.Text(text)
		lines := addedLines(lineHashes(p.Old[:min(len(p.Old), maxLineText)]), lineHashes(text))
		if n := maxLines - len(out.lines); len(lines) > n {
			out.lines, out.flags = append(out.lines, lines[:max(0, n)]...), out.flags|linesCut
			return out
		}
		out.lines = append(append(out.lines, lines...), editLine{})
	}
	return out
}

const (
	maxLines    = 2000
	maxLineText = 256 << 10 // bytes of new text
)

// keepLines stores the lines of a row. A row that has lines keeps them.
func keepLines(ctx context.Context, tx *store.Tx, id int64, l editLines) error {
	if len(l.lines) == 0 {
		return nil
	}
	salt, err := lineSalt(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertEditLines, id, l.salted(uint64(salt)))
	return err
}

const (
	insertEditLines = `INSERT OR IGNORE INTO observation_lines (observation_id, lines) VALUES (?, ?)`
)
