package observation

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// fit renders the sections and cuts, in the contract's order, until the text is
// within its limits: other projects, digest, intents past five, likely files past
// ten, lowest rows; what other parts tell goes before nothing but the pinned rows.
func (b *contextBuilder) fit() Context {
	for {
		c := b.render()
		if c.Text == "" || c.Tokens <= b.limits.MaxTokens && utf8.RuneCountInString(c.Text) <= maxContextChars || !b.cut() {
			return c
		}
	}
}

// cut takes one line out; false if nothing is left that may go.
func (b *contextBuilder) cut() bool {
	switch {
	case len(b.cross) > 0:
		b.cross = b.cross[:len(b.cross)-1]
	case len(b.digest) > 0:
		b.digest = nil
	case len(b.intents) > 5:
		b.intents = b.intents[:len(b.intents)-1]
	case len(b.likely) > 10:
		b.likely = b.likely[:len(b.likely)-1]
	case len(b.local) > 0:
		b.local = b.local[:len(b.local)-1]
	case len(b.likely) > 0:
		b.likely = b.likely[:len(b.likely)-1]
	case len(b.intents) > 0:
		b.intents = b.intents[:len(b.intents)-1]
	case b.cutOther():
	case len(b.pinned) > 0:
		b.pinned = b.pinned[:len(b.pinned)-1]
	default:
		return false
	}
	return true
}

func (b *contextBuilder) render() Context {
	var c Context
	var body strings.Builder
	section := func(title, name string, rows []contextRow, head ...string) {
		if len(rows) == 0 {
			return
		}
		fmt.Fprintf(&body, "\n## %s\n", title)
		for _, line := range head {
			body.WriteString(line + "\n")
		}
		for _, r := range rows {
			body.WriteString(r.line + "\n")
			if r.id != 0 {
				c.Items = append(c.Items, r.items(name, tokens(r.line))...)
			}
		}
	}
	head := []string{"| ID | Time | Type | Summary |", "|----|------|------|---------|"}
	parts := func(first bool) {
		for _, s := range b.others {
			if s.First == first {
				section(s.Title, "", s.rows())
			}
		}
	}
	parts(true)
	section("Pinned", sectionPinned, b.pinned, head...)
	if len(b.digest) > 0 {
		section("Last Session", sectionDigest, []contextRow{{id: b.last, line: strings.Join(b.digest, "\n")}})
	}
	section("Recent Intents", sectionIntents, b.intents)
	section("Likely Files", sectionLikely, fileLines(b.likely, b.project.Root))
	section(cell(b.project.ID, 64), sectionLocal, b.local, head...)
	section("Other projects", sectionCross, b.cross)
	parts(false)
	if body.Len() == 0 {
		return Context{}
	}
	c.Text = contextHeader + body.String()
	c.Tokens = tokens(c.Text)
	return c
}

// tokens estimates what a text costs a model: a quarter of its bytes.
func tokens(s string) int { return (len(s) + 3) / 4 }

// ago says how long before now something was: minutes, hours or days, and after
// a week the day.
func ago(now, at int64) string {
	switch age := max(now-at, 0); {
	case age < 60*60:
		return fmt.Sprintf("%dm ago", age/60)
	case age < 24*60*60:
		return fmt.Sprintf("%dh ago", age/(60*60))
	case age <= 7*24*60*60:
		return fmt.Sprintf("%dd ago", age/(24*60*60))
	default:
		return time.Unix(at, 0).UTC().Format("Jan 02")
	}
}
