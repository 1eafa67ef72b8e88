package markdown

import (
	"html"
	"strconv"
	"strings"
)

// maxSource is how long a text may be, in bytes, to be read as Markdown: a longer one
// that was made for it could take seconds.
const maxSource = 128 << 10

// maxInline is how deep emphasis is followed.
const maxInline = 20

// page is what is being written.
type page struct {
	strings.Builder
	refs      map[string]string
	refBudget int // bytes of addresses that references may still write
	padding   int // cells that rows may still leave out
}

// HTML is a text as HTML that does nothing: blocks for the inside of an element. It
// takes any text; an empty one gives "", one of more than 128 KiB is shown as it was
// typed.
//
// Elements: h1 to h6, p, ul, ol (start), li, blockquote, pre, code (class
// language-…), em, strong, del, a (href, rel), img (src, alt), hr, br, span (class
// mark) and those of tables (class center or right).
func HTML(source string) string {
	if len(source) > maxSource {
		out := &page{}
		out.block(&node{kind: code, text: source})
		return out.String()
	}
	p := &parser{refs: map[string]string{}}
	blocks, _ := p.blocks(lines(source), 0)
	out := &page{refs: p.refs, refBudget: max(len(source), 100_000), padding: maxPadded}
	out.blocks(blocks, false)
	return out.String()
}

func (p *page) blocks(all []*node, tight bool) {
	for i, n := range all {
		if tight && n.kind == paragraph {
			if i > 0 {
				p.WriteString("\n")
			}
			p.tokens(p.inline(n.text))
			continue
		}
		p.block(n)
	}
}

func (p *page) block(n *node) {
	switch n.kind {
	case paragraph:
		p.leaf("p", n.text)
	case heading:
		p.leaf("h"+strconv.Itoa(n.level), n.text)
	case quote:
		p.WriteString("<blockquote>\n")
		p.blocks(n.kids, false)
		p.WriteString("</blockquote>\n")
	case list:
		p.list(n)
	case code:
		p.WriteString("<pre><code")
		if word, _, _ := strings.Cut(n.info, " "); isWord(word) {
			p.WriteString(` class="language-` + word + `"`)
		}
		p.WriteString(">")
		p.escape(n.text)
		p.WriteString("</code></pre>\n")
	case rule:
		p.WriteString("<hr>\n")
	case table:
		p.table(n)
	}
}

func (p *page) leaf(element, source string) {
	p.WriteString("<" + element + ">")
	p.tokens(p.inline(source))
	p.WriteString("</" + element + ">\n")
}

func (p *page) list(n *node) {
	element := "ul"
	if n.ordered {
		element = "ol"
	}
	p.WriteString("<" + element)
	if n.ordered && n.level != 1 {
		p.WriteString(` start="` + strconv.Itoa(n.level) + `"`)
	}
	p.WriteString(">\n")
	for _, i := range n.kids {
		p.WriteString("<li>")
		if i.task != 0 {
			p.WriteString(string(i.task) + " ")
		}
		p.blocks(i.kids, !n.loose)
		p.WriteString("</li>\n")
	}
	p.WriteString("</" + element + ">\n")
}

func (p *page) table(n *node) {
	p.WriteString("<table>\n<thead>\n")
	p.row("th", n.cells, n.align)
	p.WriteString("</thead>\n")
	if len(n.rows) > 0 {
		p.WriteString("<tbody>\n")
		for _, r := range n.rows {
			p.row("td", r, n.align)
		}
		p.WriteString("</tbody>\n")
	}
	p.WriteString("</table>\n")
}

func (p *page) row(element string, cells, align []string) {
	p.WriteString("<tr>")
	for i, a := range align {
		if i >= len(cells) {
			if p.padding == 0 {
				break
			}
			p.padding--
		}
		p.WriteString("<" + element)
		if a != "" {
			p.WriteString(` class="` + a + `"`)
		}
		p.WriteString(">")
		if i < len(cells) {
			p.tokens(p.inline(cells[i]))
		}
		p.WriteString("</" + element + ">")
	}
	p.WriteString("</tr>\n")
}

// tokens writes a line. What is nested too deep is written without its elements.
func (p *page) tokens(all []token) {
	var open []bool // whether the element was written
	linked := false
	for _, t := range all {
		for _, element := range t.closes {
			if last := len(open) - 1; open[last] {
				p.WriteString("</" + element + ">")
			}
			open = open[:len(open)-1]
		}
		switch t.kind {
		case span:
			p.WriteString("<code>")
			p.escape(t.text)
			p.WriteString("</code>")
		case anchor:
			if linked = t.to != ""; linked {
				p.anchor(t.to)
			}
		case anchorEnd:
			if linked {
				p.WriteString("</a>")
			}
			linked = false
		case image:
			p.image(t, linked)
		case newline:
			p.WriteString("<br>\n")
		default:
			p.escape(t.text)
		}
		for i := len(t.opens) - 1; i >= 0; i-- {
			open = append(open, len(open) < maxInline)
			if open[len(open)-1] {
				p.WriteString("<" + t.opens[i] + ">")
			}
		}
	}
}

func (p *page) anchor(to string) {
	p.WriteString(`<a href="` + to + `" rel="noopener noreferrer nofollow">`)
}

// image writes an image that holds its data; a page is not to fetch any other, so of
// that the address is told.
func (p *page) image(t token, linked bool) {
	switch {
	case strings.HasPrefix(t.to, "h"), strings.HasPrefix(t.to, "H"):
		if t.text == "" {
			t.text = "image"
		}
		if linked {
			p.escape(t.text)
			return
		}
		p.anchor(t.to)
		p.escape(t.text)
		p.WriteString("</a>")
	case len(t.to) > 0 && (t.to[0] == 'd' || t.to[0] == 'D'):
		p.WriteString(`<img src="` + t.to + `" alt="` + html.EscapeString(Visible(t.text)) + `">`)
	default:
		p.escape(t.text)
	}
}

// isWord reports whether a language may name a class.
func isWord(word string) bool {
	return word != "" && len(word) <= 40 &&
		strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-_#.") == ""
}

// escape writes a text so that a page shows it.
func (p *page) escape(in string) {
	start := 0
	for i, r := range in {
		with := ""
		switch {
		case r == '&':
			with = "&amp;"
		case r == '<':
			with = "&lt;"
		case r == '>':
			with = "&gt;"
		case r == '"':
			with = "&#34;"
		case r == '\'':
			with = "&#39;"
		case turns(r) || isControl(r):
			with = `<span class="mark">` + name(r) + `</span>`
		default:
			continue
		}
		p.WriteString(in[start:i])
		p.WriteString(with)
		start = i + len(string(r))
	}
	p.WriteString(in[start:])
}
