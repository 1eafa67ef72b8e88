package recall

// Piece is a part of a text.
type Piece struct {
	Text  string `json:"text"`
	Found bool   `json:"found,omitempty"` // one of the words that were searched for
}

// Mark cuts an excerpt of the answer at the words that were found; the pieces in their order
// are the excerpt.
func (a *Answer) Mark(excerpt string) []Piece {
	if a.finder == nil {
		return []Piece{{Text: excerpt}}
	}
	var out []Piece
	end := 0
	for _, p := range a.finder.Find(excerpt) {
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
