package capture

import (
	"context"

	"cairn/internal/editlines"
	"cairn/internal/observation"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// linesOf returns the lines that a call wrote, without secrets.
func linesOf(c *observation.Call, f *redact.Filter) (out editlines.Lines) {
	if c.Failed || len(c.Pieces) == 0 {
		return out
	}
	if c.Whole {
		out.Flags |= editlines.Whole
	}
	if c.Created {
		out.Flags |= editlines.New
	}
	if c.Partial {
		out.Flags |= editlines.Partial
	}
	room := maxLineText
	for _, p := range c.Pieces {
		text := p.New
		if len(text) > room {
			text, out.Flags = text[:room], out.Flags|editlines.IsCut
		}
		room -= len(text)
		text, _ = f.Text(text)
		lines := editlines.AddedLines(editlines.Hashes(p.Old[:min(len(p.Old), maxLineText)]), editlines.Hashes(text))
		if n := maxLines - len(out.Lines); len(lines) > n {
			out.Lines, out.Flags = append(out.Lines, lines[:max(0, n)]...), out.Flags|editlines.IsCut
			return out
		}
		out.Lines = append(append(out.Lines, lines...), editlines.Line{})
	}
	return out
}

const (
	maxLines    = 2000
	maxLineText = 256 << 10 // bytes of new text
)

// keepLines stores the lines of a row. It does not replace existing lines.
func keepLines(ctx context.Context, tx *store.Tx, id int64, l editlines.Lines) error {
	if len(l.Lines) == 0 {
		return nil
	}
	salt, err := observation.LineSalt(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertEditLines, id, l.Salted(uint64(salt)))
	return err
}

const (
	insertEditLines = `INSERT OR IGNORE INTO observation_lines (observation_id, lines) VALUES (?, ?)`
)
