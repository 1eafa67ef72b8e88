package harness

import (
	"iter"
	"strings"

	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// maxPieces limits how many passages of one call are read.
const maxPieces = 1000

// ReadPieces adds the written passages of the file to a finished edit or write. It prefers a diff
// in the response, which contains whole lines with their context. display is another object that
// may contain the diff, or nil.
func ReadPieces(c *observation.Call, input, response, display lazyjson.Value) {
	if c.Action != observation.Write && c.Action != observation.Edit || c.Failed || c.Deleted || c.Pieces != nil {
		return
	}
	for hunk := range response.Get("structuredPatch").Elements() {
		addPiece(c, diffPiece(hunk.Get("lines").Texts()))
	}
	if diff := display.Get("fileDiff").Text(); diff != "" && c.Pieces == nil {
		for _, hunk := range strings.Split("\n"+diff, "\n@@")[1:] {
			_, lines, _ := strings.Cut(hunk, "\n")
			addPiece(c, diffPiece(strings.Lines(lines)))
		}
	}
	if c.Pieces != nil {
		return
	}
	if c.Action == observation.Write {
		f := input.Pick("content", "contents", "file_text")
		if whole := lazyjson.FirstNonBlank(f[0].Text(), f[1].Text(), f[2].Text()); whole != "" {
			c.Whole, c.Pieces = true, []observation.Piece{{New: whole}}
		}
		return
	}
	f := input.Pick("edits", "old_string", "new_string", "new_source", "old_str", "new_str")
	addPiece(c, observation.Piece{Old: lazyjson.First(f[1], f[4]).Text(), New: lazyjson.First(f[2], f[5]).Text()})
	addPiece(c, observation.Piece{New: f[3].Text()})
	for edit := range f[0].Elements() {
		e := edit.Pick("old_string", "new_string")
		addPiece(c, observation.Piece{Old: e[0].Text(), New: e[1].Text()})
	}
	c.Partial = c.Pieces != nil && f[3] == nil
}

// addPiece adds a passage to a call if the passage has text.
func addPiece(c *observation.Call, p observation.Piece) {
	if p.New != "" && len(c.Pieces) < maxPieces {
		c.Pieces = append(c.Pieces, p)
	}
}

// diffPiece returns one hunk of a diff. Its lines begin with a space, a plus or a minus sign.
func diffPiece(lines iter.Seq[string]) observation.Piece {
	var before, after strings.Builder
	for line := range lines {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			line = " "
		}
		if c := line[0]; c == ' ' || c == '-' {
			before.WriteString(line[1:] + "\n")
		}
		if c := line[0]; c == ' ' || c == '+' {
			after.WriteString(line[1:] + "\n")
		}
	}
	return observation.Piece{Old: before.String(), New: after.String()}
}
