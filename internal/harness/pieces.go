package harness

import (
	"bytes"
	"iter"
	"strings"

	"cairn/internal/observation"
)

// maxPieces limits how many passages of one call are read.
const maxPieces = 1000

// readPieces adds the written passages of the file to a finished edit or write. It prefers a diff
// in the response, which contains whole lines with their context. display is another object that
// may contain the diff, or nil.
func readPieces(c *observation.Call, input, response, display []byte) {
	if c.Action != observation.Write && c.Action != observation.Edit || c.Failed || c.Deleted || c.Pieces != nil {
		return
	}
	for hunk := range elements(get(response, "structuredPatch")) {
		addPiece(c, diffPiece(jsonTexts(get(hunk, "lines"))))
	}
	if diff := text(get(display, "fileDiff")); diff != "" && c.Pieces == nil {
		for _, hunk := range strings.Split("\n"+diff, "\n@@")[1:] {
			_, lines, _ := strings.Cut(hunk, "\n")
			addPiece(c, diffPiece(strings.Lines(lines)))
		}
	}
	if c.Pieces != nil {
		return
	}
	if c.Action == observation.Write {
		f := pick(input, "content", "contents", "file_text")
		if whole := firstNonBlank(text(f[0]), text(f[1]), text(f[2])); whole != "" {
			c.Whole, c.Pieces = true, []observation.Piece{{New: whole}}
		}
		return
	}
	f := pick(input, "edits", "old_string", "new_string", "new_source", "old_str", "new_str")
	addPiece(c, observation.Piece{Old: text(firstOf(f[1], f[4])), New: text(firstOf(f[2], f[5]))})
	addPiece(c, observation.Piece{New: text(f[3])})
	for edit := range elements(f[0]) {
		e := pick(edit, "old_string", "new_string")
		addPiece(c, observation.Piece{Old: text(e[0]), New: text(e[1])})
	}
	c.Partial = c.Pieces != nil && f[3] == nil
}

// addPiece adds a passage to a call if the passage has text.
func addPiece(c *observation.Call, p observation.Piece) {
	if p.New != "" && len(c.Pieces) < maxPieces {
		c.Pieces = append(c.Pieces, p)
	}
}

// jsonTexts yields the strings of an array.
func jsonTexts(array []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range elements(array) {
			if !yield(text(line)) {
				return
			}
		}
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

// editInput returns a copy of the input of a call that edits or writes a file. It returns nil for
// other calls.
func editInput(tool string, input []byte) []byte {
	if a := actionOf(tool); a != observation.Edit && a != observation.Write {
		return nil
	}
	return bytes.Clone(input)
}
