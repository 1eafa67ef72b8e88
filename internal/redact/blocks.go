package redact

import (
	"strings"

	"cairn/internal/redact/shape"
)

// Rule names of the blocks.
const (
	rulePrivate  = "private"
	ruleKeyBlock = "key_block"
)

// blocks redacts private sections and key blocks.
func (s *scan) blocks() {
	f := blockFinder{text: s.text}
	for {
		b, ok := f.next()
		if !ok {
			return
		}
		s.add(b.rule, b.start, b.end)
	}
}

// openBlock returns the mark of the block around text[at] and the end of the block, or ""
// and at if there is none. It reads the whole text, but only for the few literals that
// open and close blocks.
func (f *Filter) openBlock(text string, at int) (mark string, end int) {
	s := scan{f: f, text: text}
	s.blocks()
	for _, b := range s.spans {
		if b.start < at && at < b.end {
			return b.mark(), b.end
		}
	}
	return "", at
}

// blockFinder finds the blocks of a text from first to last. A block inside another one is
// part of it.
type blockFinder struct {
	text         string
	pos          int // everything before has been processed
	private, key int // next opening, if known to be at or after pos
	started      bool
}

func (f *blockFinder) next() (span, bool) {
	if f.private < f.pos || !f.started {
		f.private = indexTag(f.text, f.pos, privateOpen)
	}
	if f.key < f.pos || !f.started {
		f.key = indexKeyLine(f.text, f.pos, "begin")
	}
	f.started = true
	var b span
	switch {
	case f.private >= len(f.text) && f.key >= len(f.text):
		return b, false
	case f.private < f.key:
		b = span{f.private, privateEnd(f.text, f.private), rulePrivate}
	default:
		b = span{f.key, keyEnd(f.text, f.key), ruleKeyBlock}
	}
	f.pos = b.end
	return b, true
}

const (
	privateOpen  = "<private>"
	privateClose = "</private>"
)

// indexTag returns the next position of tag at or after from, in any case, or the length
// of text.
func indexTag(text string, from int, tag string) int {
	for i := from; i < len(text); i++ {
		j := strings.IndexByte(text[i:], '<')
		if j < 0 {
			break
		}
		i += j
		if shape.HasFold(text[i:], tag) {
			return i
		}
	}
	return len(text)
}

// privateEnd returns the end of the private section that opens at start. Sections may be
// nested. An unclosed section ends with the text.
func privateEnd(text string, start int) int {
	depth := 0
	for i := start; i < len(text); i++ {
		j := strings.IndexByte(text[i:], '<')
		if j < 0 {
			break
		}
		i += j
		if shape.HasFold(text[i:], privateOpen) {
			depth++
		} else if shape.HasFold(text[i:], privateClose) {
			if depth--; depth == 0 {
				return i + len(privateClose)
			}
		}
	}
	return len(text)
}

// keyEnd returns the end of the key block that begins at start, which is after its END
// line. It returns the end of the text if that line is missing.
func keyEnd(text string, start int) int {
	i := indexKeyLine(text, start+1, "end")
	if i == len(text) {
		return i
	}
	n, _ := keyLine(text[i:], "end")
	return i + n
}

// indexKeyLine returns the start of the next line like "-----BEGIN RSA PRIVATE KEY-----"
// at or after from, or the length of text. word is begin or end.
func indexKeyLine(text string, from int, word string) int {
	const dashes = "----"
	for i := from; i < len(text); {
		j := strings.Index(text[i:], dashes)
		if j < 0 {
			break
		}
		i += j
		if _, ok := keyLine(text[i:], word); ok {
			return i
		}
		i = shape.Skip(text, i, len(text), func(c byte) bool { return c == '-' })
	}
	return len(text)
}

// keyLine reports whether s begins with the dashes, the word and the other words of a
// private key's first or last line. It also returns the length of that line. Dashes at its
// end may be missing where the line is cut.
func keyLine(s, word string) (int, bool) {
	isDash := func(c byte) bool { return c == '-' }
	i := shape.Skip(s, 0, len(s), isDash)
	i = shape.Skip(s, i, 1, shape.IsBlank)
	if !shape.HasFold(s[i:], word) {
		return 0, false
	}
	const (
		longest = 120 // bytes between the word and the key words
		words   = "private key"
		block   = " block"
	)
	for end := min(len(s), i+longest); i < end; i++ {
		c := s[i]
		if shape.HasFold(s[i:], words) {
			i += len(words)
			if shape.HasFold(s[i:], block) {
				i += len(block)
			}
			i = shape.Skip(s, i, 1, shape.IsBlank)
			end := shape.Skip(s, i, len(s), isDash)
			return end, end >= i+4 || word == "end"
		}
		if !shape.IsWord(c) && c != ' ' && c != '-' {
			break
		}
	}
	return 0, false
}
