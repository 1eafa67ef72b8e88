package recall

import (
	"strings"

	"cairn/internal/words"
)

// Piece is a part of a text.
type Piece struct {
	Text  string `json:"text"`
	Found bool   `json:"found,omitempty"` // a word of the search
}

// Mark splits an excerpt of the answer at the words that match. The pieces in order are
// the excerpt.
func (a *Answer) Mark(excerpt string) []Piece { return pieces(a.finder, excerpt) }

// Marked returns a text with on and off before and after each word that the finder finds.
// Without a finder, or if on and off are empty, it returns the text unchanged.
func Marked(finder *words.Finder, text, on, off string) string {
	if on+off == "" {
		return text
	}
	var b strings.Builder
	for _, p := range pieces(finder, text) {
		if p.Found {
			p.Text = on + p.Text + off
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

func pieces(finder *words.Finder, excerpt string) []Piece {
	if finder == nil {
		return []Piece{{Text: excerpt}}
	}
	var out []Piece
	end := 0
	for _, p := range finder.Find(excerpt) {
		if p.From < end {
			continue
		}
		if p.From > end {
			out = append(out, Piece{Text: excerpt[end:p.From]})
		}
		out = append(out, Piece{Text: excerpt[p.From:p.To], Found: true})
		end = p.To
	}
	if end < len(excerpt) {
		out = append(out, Piece{Text: excerpt[end:]})
	}
	return out
}
