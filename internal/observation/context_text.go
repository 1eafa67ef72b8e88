package observation

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// aim is how large the text should be: five sevenths of what it may be at most. Lines
// that only add detail are cut until the text is that small.
func (b *contextBuilder) aim() int {
	if b.limits.Plain {
		return b.limits.MaxTokens
	}
	return b.limits.MaxTokens * 5 / 7
}

// isFull reports whether other projects' rows would be cut anyway.
func (b *contextBuilder) isFull() bool {
	c := b.render()
	return c.Tokens >= b.aim()
}

// fit renders the sections and cuts until the text is as large as it should be, then,
// of lines that matter more, until it is as large as it may be.
func (b *contextBuilder) fit() Context {
	for _, limit := range []struct {
		tokens int
		cut    func() int
	}{{b.aim(), b.cutDetail}, {b.limits.MaxTokens, b.cut}} {
		for {
			c := b.render()
			over := max(len(c.Text)-4*limit.tokens, utf8.RuneCountInString(c.Text)-maxContextChars)
			if over <= 0 || c.Text == "" {
				break
			}
			saved := 0
			for saved < over {
				n := limit.cut()
				if n == 0 {
					break
				}
				saved += n
			}
			if saved == 0 {
				break
			}
		}
	}
	return b.render()
}

// What stays when detail is cut.
const (
	keptLikely  = 20
	keptIntents = 6
	keptLocal   = 14
)

// cutDetail removes the line or file that is needed least and returns about how many
// bytes that saves, 0 if only lines are left that matter more.
func (b *contextBuilder) cutDetail() int {
	switch {
	case len(b.cross) > 0:
		return cutLast(&b.cross, tableRowSize)
	case len(b.likely) > keptLikely:
		return cutLast(&b.likely, likelySize)
	case len(b.intents) > keptIntents:
		return cutLast(&b.intents, lineSize)
	case len(b.local) > keptLocal:
		return cutLast(&b.local, tableRowSize)
	case len(b.likely) > keptLikely/2:
		return cutLast(&b.likely, likelySize)
	}
	return 0
}

// cut removes what is needed least and returns about how many bytes that saves, 0 if
// nothing is left: other projects, the digest, intents past five, likely files past
// ten, lowest rows, then the rest. Pinned rows go last, after other parts' lines.
func (b *contextBuilder) cut() int {
	switch {
	case len(b.cross) > 0:
		return cutLast(&b.cross, tableRowSize)
	case len(b.intents) > keptIntents-1:
		return cutLast(&b.intents, lineSize)
	case len(b.likely) > keptLikely/2:
		return cutLast(&b.likely, likelySize)
	case len(b.local) > 0:
		return cutLast(&b.local, tableRowSize)
	case len(b.likely) > 0:
		return cutLast(&b.likely, likelySize)
	case len(b.digest) > 0:
		return cutLast(&b.digest, func(line string) int { return len(line) + 1 })
	case len(b.intents) > 0:
		return cutLast(&b.intents, lineSize)
	case len(b.checks) > 0:
		return cutLast(&b.checks, lineSize)
	case len(b.wishes) > 0:
		return cutLast(&b.wishes, lineSize)
	case b.cutOther():
		return MaxSectionLine
	case len(b.pinned) > 0:
		return cutLast(&b.pinned, lineSize)
	}
	return 0
}

func cutLast[T any](list *[]T, size func(T) int) int {
	last := len(*list) - 1
	n := size((*list)[last])
	*list = (*list)[:last]
	return max(n, 1)
}

func lineSize(r contextRow) int { return len(r.line) + 1 }

// likelySize and tableRowSize are what a file costs in a line with others.
func likelySize(f LikelyFile) int { return len(f.Path) - strings.LastIndexByte(f.Path, '/') + 1 }

func tableRowSize(r tableRow) int {
	if r.path == "" {
		return len(r.summary) + 30
	}
	return len(r.summary) - strings.LastIndexByte(r.summary, '/') + 8
}

func (b *contextBuilder) render() Context {
	var c Context
	var body strings.Builder
	body.Grow(4 * b.limits.MaxTokens)
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
	parts := func(first bool) {
		for _, s := range b.others {
			if s.First == first {
				section(s.Title, "", s.rows())
			}
		}
	}
	table := foldLines
	if b.limits.Plain {
		table = plainLines
	}
	head := []string{"| ID | Time | Type | Summary |", "|----|------|------|---------|"}
	parts(true)
	section("Pinned", sectionPinned, b.pinned, head...)
	if len(b.digest) > 0 {
		title := "Last Session"
		if b.span.own {
			title = "This Session"
		}
		section(title, sectionDigest, []contextRow{{id: b.last, line: strings.Join(b.digest, "\n")}})
	}
	section("Wishes", sectionWishes, b.wishes)
	parts(false)
	section("Recent Intents", sectionIntents, b.intents)
	section("Checks", sectionChecks, b.checks)
	section(cell(b.project.ID, 64), sectionLocal, table(b.local, b.now), head...)
	section("Likely Files", sectionLikely, fileLines(b.likely, b.project.Root))
	section("Other projects", sectionCross, table(b.cross, b.now))
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
