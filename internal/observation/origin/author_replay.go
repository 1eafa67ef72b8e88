package origin

import (
	"math"
	"slices"

	"cairn/internal/editlines"
)

// The edits of a file are undone one by one, newest first. Each passage of an edit is aligned
// with the remaining lines of the current file. The edit becomes the author of the lines that
// the passage added. These lines are then removed, so that older edits are compared with the
// file as it was before.

// knownLine is a nonblank line of the current file.
type knownLine struct {
	hash    uint32
	anchor  bool // the file has it once, and it has enough letters to be distinctive
	strong  bool // anchor with so many letters that few files have the line
	support int  // number of nearby lines in the passage that added it, itself included
	author  int  // index of the row that added it, noAuthor if none
	rewrite int  // index of the oldest row that wrote it as part of a whole file, noAuthor if none

	wanted bool   // the caller needs its author
	until  *int64 // for a wanted line: later rows are not its author; nil for no bound
}

// replay finds the authors of lines.
type replay struct {
	rows  []editRow // oldest first
	lines []knownLine
	left  []int          // indices of lines without an author so far
	only  map[uint32]int // position in left by hash, -1 if several lines have the hash
}

// noAuthor is the index that means no row.
const noAuthor = -1

func newReplay(rows []editRow, f *foldedFile) (r *replay, index []int) {
	r = &replay{rows: rows}
	count := map[string]int{}
	for _, folded := range f.folded {
		count[folded]++
	}
	index = make([]int, len(f.folded)) // index in r.lines, -1 for a blank line
	for i, folded := range f.folded {
		if index[i] = len(r.lines); folded == "" {
			index[i] = -1
			continue
		}
		l := knownLine{hash: editlines.Salt(editlines.Hash(folded), f.salt), author: noAuthor, rewrite: noAuthor}
		if n := letters(folded); count[folded] == 1 {
			l.anchor, l.strong = n >= plainLetter, n >= strongLetter
		}
		r.lines = append(r.lines, l)
	}
	r.index()
	return r, index
}

// index recomputes left and only.
func (r *replay) index() {
	r.left, r.only = r.left[:0], make(map[uint32]int, len(r.lines))
	for i, l := range r.lines {
		if l.author != noAuthor {
			continue
		}
		if _, several := r.only[l.hash]; several {
			r.only[l.hash] = -1
		} else {
			r.only[l.hash] = len(r.left)
		}
		r.left = append(r.left, i)
	}
}

// want marks a line whose author run must find.
func (r *replay) want(line int, until *int64) {
	r.lines[line].wanted, r.lines[line].until = true, until
}

// run undoes the rows, newest first, until all wanted lines have authors.
func (r *replay) run() {
	for i, row := range slices.Backward(r.rows) {
		added := false
		for hunk := range hunks(editlines.Entries(row.lines)) {
			found := r.supported(r.align(hunk))
			for k, p := range found {
				line := &r.lines[r.left[p.file]]
				switch {
				case hunk[p.edit]&editlines.Added == 0 || line.wanted && line.until != nil && row.at > *line.until:
				case row.isRewrite():
					line.rewrite = i
				default:
					line.author, line.support, added = i, support(found, k), true
				}
			}
		}
		if added {
			r.index()
		}
		if !slices.ContainsFunc(r.lines, func(l knownLine) bool { return l.wanted && l.author == noAuthor }) {
			return
		}
	}
}

// hunks yields the passages of an edit.
func hunks(all []uint32) func(func([]uint32) bool) {
	return func(yield func([]uint32) bool) {
		for len(all) > 0 {
			n := slices.Index(all, 0)
			if n < 0 {
				n = len(all)
			}
			if n > 0 && !yield(all[:n]) {
				return
			}
			all = all[min(len(all), n+1):]
		}
	}
}

// aligned is the index of a line in a passage and its position in left.
type aligned struct{ edit, file int }

// align matches the lines of a passage with the remaining lines. Its anchors are lines with
// enough letters that occur once in the passage and once in the file. Other lines match if they
// follow an anchor without a gap. They also match if they occur equally often between two
// anchors in the passage and in the file.
func (r *replay) align(hunk []uint32) []aligned {
	anchors := r.anchors(hunk)
	if len(anchors) == 0 {
		return r.once(hunk)
	}
	var out []aligned
	before := aligned{-1, -1}
	for k := 0; k <= len(anchors); k++ {
		after := aligned{len(hunk), len(r.left)}
		if k < len(anchors) {
			after = anchors[k]
		}
		out = append(out, r.between(hunk, before, after)...)
		if k < len(anchors) {
			out = append(out, after)
		}
		before = after
	}
	return out
}

// supported returns the aligned lines that are near a strong line.
func (r *replay) supported(all []aligned) []aligned {
	slices.SortFunc(all, func(a, b aligned) int { return a.edit - b.edit })
	near := make([]bool, len(all))
	for _, backwards := range [...]bool{false, true} {
		last := math.MinInt / 2
		for k := range all {
			if backwards {
				k = len(all) - 1 - k
			}
			if r.lines[r.left[all[k].file]].strong {
				last = all[k].edit
			}
			near[k] = near[k] || max(last-all[k].edit, all[k].edit-last) <= blockLines
		}
	}
	out := all[:0]
	for k, p := range all {
		if near[k] {
			out = append(out, p)
		}
	}
	return out
}

// anchors returns the longest list of unique lines that are in the same order in the passage
// and in the file.
func (r *replay) anchors(hunk []uint32) []aligned {
	count := make(map[uint32]int, len(hunk))
	for _, n := range hunk {
		count[n&^editlines.Added]++
	}
	var all []aligned
	for i, n := range hunk {
		if p, ok := r.only[n&^editlines.Added]; ok && p >= 0 && count[n&^editlines.Added] == 1 && r.lines[r.left[p]].anchor {
			all = append(all, aligned{i, p})
		}
	}
	if len(all) < 2 {
		return all
	}
	var tails, from []int // patience sorting: last element of the best list of each length
	for i, a := range all {
		k, _ := slices.BinarySearchFunc(tails, a.file, func(t, file int) int { return all[t].file - file })
		prev := -1
		if k > 0 {
			prev = tails[k-1]
		}
		from = append(from, prev)
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	var out []aligned
	for i := tails[len(tails)-1]; i >= 0; i = from[i] {
		out = append(out, all[i])
	}
	slices.Reverse(out)
	return out
}

// maxChanged is the maximum number of changed lines between an anchor and three equal lines of
// its passage. The passage and the file must have the same number of changed lines.
const maxChanged = 2

// between aligns the lines between two anchors, or those before the first or after the last
// anchor.
func (r *replay) between(hunk []uint32, a, b aligned) (out []aligned) {
	same := func(edit, file int) bool { return hunk[edit]&^editlines.Added == r.lines[r.left[file]].hash }
	open := a.edit < 0 || b.edit >= len(hunk) // one side has no anchor
	for step := 1; step >= -1; step -= 2 {
		from, to := &a, b
		if step < 0 {
			from, to = &b, a
		}
		if from.edit < 0 || from.edit >= len(hunk) {
			continue
		}
		// follows reports whether the line n steps away from from is equal in both.
		follows := func(n int) bool {
			edit, file := from.edit+n*step, from.file+n*step
			return (to.edit-edit)*step > 0 && (to.file-file)*step > 0 && same(edit, file)
		}
		for {
			for follows(1) {
				*from = aligned{from.edit + step, from.file + step}
				out = append(out, *from)
			}
			gap := 0
			for n := 1; open && gap == 0 && n <= maxChanged; n++ {
				if follows(n+1) && follows(n+2) && follows(n+3) {
					gap = n
				}
			}
			if gap == 0 {
				break
			}
			*from = aligned{from.edit + gap*step, from.file + gap*step}
		}
	}
	if a.edit < 0 || b.edit >= len(hunk) || b.edit-a.edit < 2 || b.file-a.file < 2 {
		return out
	}
	places := map[uint32][]int{}
	for file := a.file + 1; file < b.file; file++ {
		h := r.lines[r.left[file]].hash
		places[h] = append(places[h], file)
	}
	count := map[uint32]int{}
	for edit := a.edit + 1; edit < b.edit; edit++ {
		count[hunk[edit]&^editlines.Added]++
	}
	nth := map[uint32]int{}
	for edit := a.edit + 1; edit < b.edit; edit++ {
		h := hunk[edit] &^ editlines.Added
		if len(places[h]) == count[h] {
			out = append(out, aligned{edit, places[h][nth[h]]})
			nth[h]++
		}
	}
	return out
}

// leastLines is the minimum number of lines in a passage without an anchor.
const leastLines = 3

// once aligns a passage without an anchor if the remaining lines contain it exactly once,
// without gaps. Otherwise it returns nil.
func (r *replay) once(hunk []uint32) (out []aligned) {
	if len(hunk) < leastLines {
		return nil
	}
	at := math.MinInt
	for file := 0; file+len(hunk) <= len(r.left); file++ {
		n := 0
		for n < len(hunk) && hunk[n]&^editlines.Added == r.lines[r.left[file+n]].hash {
			n++
		}
		if n < len(hunk) {
			continue
		}
		if at >= 0 {
			return nil
		}
		at = file
	}
	for n := range hunk {
		if at >= 0 {
			out = append(out, aligned{n, at + n})
		}
	}
	return out
}

// blockLines is the maximum distance between a line and the other lines of its block.
const blockLines = 12

// support counts the aligned lines in the block of the kth line, itself included.
func support(all []aligned, k int) (n int) {
	for _, p := range all {
		if max(p.edit-all[k].edit, all[k].edit-p.edit) <= blockLines {
			n++
		}
	}
	return n
}
