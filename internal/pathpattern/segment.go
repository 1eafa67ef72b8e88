package pathpattern

import (
	"strings"
	"unicode/utf8"
)

// segment is one segment of a reading: either deep, or literal text, or tokens with at
// least one wildcard.
type segment struct {
	deep   bool // **
	text   string
	tokens []token
}

func (s segment) isDeep() bool { return s.deep }

// compiler turns the segments of one pattern into its readings.
type compiler struct {
	foldCase bool
	brackets bool // [ opens a class
	classes  int  // how many there were
	barren   bool // a segment covers nothing, so the reading covers nothing
	cased    int  // letters examined to fold classes
}

// compile fills in the readings and the prefix from the text. The literal prefix is that
// of the reading with classes; the other reading's prefix begins with it.
func (p *Pattern) compile() {
	c := compiler{foldCase: p.foldCase, brackets: true}
	reading := c.reading(p.text)
	p.prefix = fold(leading(reading))
	if !c.barren {
		p.readings[0] = reading
	}
	if c.classes > 0 {
		plain := compiler{foldCase: p.foldCase}
		p.readings[1] = plain.reading(p.text)
	}
}

func (c *compiler) reading(text string) []segment {
	if text == "." {
		return []segment{{deep: true}}
	}
	segments := make([]segment, 0, strings.Count(text, "/")+2)
	for s := range strings.SplitSeq(text, "/") {
		last := len(segments) - 1
		if s == "**" {
			if last < 0 || !segments[last].deep {
				segments = append(segments, segment{deep: true})
			}
			continue
		}
		segments = append(segments, c.segment(s))
	}
	if last := segments[len(segments)-1]; !last.deep && last.tokens == nil {
		segments = append(segments, segment{deep: true})
	}
	return segments
}

// segment reads one segment other than **.
func (c *compiler) segment(text string) segment {
	if !strings.ContainsAny(text, "*?[") {
		return segment{text: c.folded(text)}
	}
	tokens := make([]token, 0, len(text))
	wild := false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		t := token{r: r}
		switch {
		case r == '*':
			t.r = star
		case r == '?':
			t.r = anyRune
		case r == '[' && c.brackets:
			if class, n, ok := readClass(text[i:]); ok {
				t, size = c.class(class), n
			}
		}
		i += size
		if t.r >= 0 && c.foldCase {
			t.r = foldRune(t.r)
		}
		wild = wild || t.r < 0
		if t.isStar() && len(tokens) > 0 && tokens[len(tokens)-1].isStar() {
			continue
		}
		tokens = append(tokens, t)
	}
	if !wild {
		return segment{text: c.folded(text)}
	}
	c.barren = c.barren || isBarren(tokens)
	return segment{tokens: tokens}
}

func (c *compiler) folded(text string) string {
	if c.foldCase {
		return fold(text)
	}
	return text
}

// leading joins the segments before the first wildcard.
func leading(reading []segment) string {
	n := 0
	for n < len(reading) && !reading[n].deep && reading[n].tokens == nil {
		n++
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = reading[i].text
	}
	return strings.Join(texts, "/")
}
