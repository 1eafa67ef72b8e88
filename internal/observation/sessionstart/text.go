package sessionstart

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/observation/ledger"
	"cairn/internal/observation/likely"
	"cairn/internal/oneline"
)

// aim returns the target size of the text in tokens: five sevenths of the maximum, or all of it
// for a plain context. Lines that only add detail are cut until the text has that size.
func (b *contextBuilder) aim() int {
	if b.limits.Plain {
		return b.limits.MaxTokens
	}
	return b.limits.MaxTokens * 5 / 7
}

// isFull reports whether the text already has its target size, so that other projects' rows
// would be cut.
func (b *contextBuilder) isFull() bool {
	c := b.render()
	return c.Tokens >= b.aim()
}

// fit renders the sections and cuts detail until the text has its target size. If the text
// still exceeds the maximum, fit also cuts lines that matter more.
func (b *contextBuilder) fit() ledger.Injection {
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

// detailStep is one step of cutting detail: how many entries of each list stay.
type detailStep struct{ likely, intents, local int }

// detailSteps returns the steps in order. A likely file costs fewer tokens than a row or an
// intent, and is needed as often as the file of a row.
func detailSteps() [4]detailStep {
	return [...]detailStep{{30, 5, 10}, {26, 4, 8}, {20, 4, 7}, {12, 4, 6}}
}

// cutDetail removes the least needed line or file. It returns roughly how many bytes that
// saves, 0 if only lines that matter more are left.
func (b *contextBuilder) cutDetail() int {
	if len(b.cross) > 0 {
		return cutRow(&b.cross)
	}
	for _, keep := range detailSteps() {
		switch {
		case len(b.likelyFiles()) > keep.likely:
			return b.cutLikely()
		case len(b.intents) > keep.intents:
			return cutLast(&b.intents, lineSize)
		case len(b.local) > keep.local:
			return cutRow(&b.local)
		}
	}
	return 0
}

// cut removes the least needed line or file. It returns roughly how many bytes that saves, 0 if
// nothing is left. It cuts other projects, intents beyond five, likely files beyond ten and the
// project's rows, lowest first. Then follow the remaining likely files, the digest, the
// remaining intents, checks, wishes and other parts' lines. Pinned rows are cut last.
func (b *contextBuilder) cut() int {
	switch {
	case len(b.cross) > 0:
		return cutRow(&b.cross)
	case len(b.intents) > 5:
		return cutLast(&b.intents, lineSize)
	case len(b.likelyFiles()) > 10:
		return b.cutLikely()
	case len(b.local) > 0:
		return cutRow(&b.local)
	case len(b.likelyFiles()) > 0:
		return b.cutLikely()
	case len(b.digest) > 0:
		return cutLast(&b.digest, func(line string) int { return len(line) + 1 })
	case len(b.intents) > 0:
		return cutLast(&b.intents, lineSize)
	case len(b.checks) > 0:
		return cutLast(&b.checks, lineSize)
	case len(b.wishes) > 0:
		return cutLast(&b.wishes, lineSize)
	}
	if n := b.cutOther(); n > 0 {
		return n
	}
	if len(b.pinned) > 0 {
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

func lineSize(r ledger.Line) int { return len(r.Text) + 1 }

// likelyFiles returns the likeliest files that no row of the tables is about. It computes them
// again only after the table of the project lost rows.
func (b *contextBuilder) likelyFiles() []likely.File {
	if b.likelyFor == len(b.local)+1 {
		return b.shownLikely
	}
	named := make(map[string]bool, len(b.local)+len(b.pinned))
	for i := range b.local {
		named[b.local[i].path] = true
	}
	for i := range b.pinned {
		named[b.pinned[i].File] = true
	}
	b.likelyFor, b.shownLikely = len(b.local)+1, b.shownLikely[:0]
	for _, f := range b.likely {
		if len(b.shownLikely) == b.maxLikely {
			break
		}
		if !named[f.Path] {
			b.shownLikely = append(b.shownLikely, f)
		}
	}
	b.maxLikely = len(b.shownLikely)
	return b.shownLikely
}

// cutLikely removes the last of the likely files and returns roughly how many bytes that saves.
// There must be at least one.
func (b *contextBuilder) cutLikely() int {
	files := b.likelyFiles()
	b.maxLikely = len(files) - 1
	folder, name := path.Split(files[b.maxLikely].Path)
	b.shownLikely = files[:b.maxLikely]
	for i := range b.shownLikely {
		if dir, _ := path.Split(b.shownLikely[i].Path); dir == folder {
			return len(name) + 2
		}
	}
	return len("- : ") + len(folder) + len(name) + 1
}

// cutRow removes the last row of a table and returns roughly how many bytes that saves. The
// table must not be empty.
func cutRow(rows *[]tableRow) int {
	last := len(*rows) - 1
	r := (*rows)[last]
	*rows = (*rows)[:last]
	folder, name := path.Split(r.summary)
	if r.path != "" && slices.ContainsFunc(*rows, func(o tableRow) bool {
		return o.obsType == r.obsType && o.path != "" && path.Dir(o.summary)+"/" == folder
	}) {
		return len(" #1234") + len(name) + 2
	}
	return len("| #1234 | 2d ago |  |  |") + len(r.obsType) + len(r.summary) + 1
}

func (b *contextBuilder) render() ledger.Injection {
	var c ledger.Injection
	var body strings.Builder
	body.Grow(4 * b.limits.MaxTokens)
	section := func(title, name string, rows []ledger.Line, head ...string) {
		if len(rows) == 0 {
			return
		}
		fmt.Fprintf(&body, "\n## %s\n", title)
		for _, line := range head {
			body.WriteString(line + "\n")
		}
		for _, r := range rows {
			body.WriteString(r.Text + "\n")
			if r.ID != 0 {
				c.Items = append(c.Items, r.Items(name, oneline.Tokens(r.Text))...)
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
	section("Pinned", ledger.SectionPinned, b.pinned, head...)
	if len(b.digest) > 0 {
		title := "Last Session"
		if b.span.own {
			title = "This Session"
		}
		section(title, ledger.SectionDigest, []ledger.Line{{ID: b.last, Text: strings.Join(b.digest, "\n")}})
	}
	section("Wishes", ledger.SectionWishes, b.wishes)
	parts(false)
	section("Recent Intents", ledger.SectionIntents, b.intents)
	section("Checks", ledger.SectionChecks, b.checks)
	section(oneline.Cell(b.project.ID, 64), ledger.SectionLocal, table(b.local, b.now), head...)
	section("Likely Files", ledger.SectionLikely, likely.FileLines(b.likelyFiles(), b.project.Root))
	section("Other projects", ledger.SectionCross, table(b.cross, b.now))
	if body.Len() == 0 {
		return ledger.Injection{}
	}
	c.Text = contextHeader + body.String()
	c.Tokens = oneline.Tokens(c.Text)
	return c
}
