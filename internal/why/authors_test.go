package why_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn"
	"cairn/internal/why"
)

// authored is a line of the generated repository with its author: a session, or "" for a
// person.
type authored struct{ text, by string }

// village is a repository that sessions and a person change in turn. It stores the author
// of each line.
type village struct {
	*shop
	r      *rand.Rand
	files  map[string][]authored
	agents int // number of sessions so far
	names  int
}

func texts(lines []authored) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

func (v *village) path(name string) string { return filepath.Join(v.root, name) }

func (v *village) store(name string, lines []authored) {
	v.files[name] = lines
	write(v.t, v.path(name), texts(lines))
}

// session starts a new session.
func (v *village) session() string {
	v.agents++
	id := fmt.Sprintf("s%03d", v.agents)
	v.prompt(id, fmt.Sprintf("please do the work number %d", v.agents))
	return id
}

func (v *village) word() string {
	v.names++
	return []string{"fee", "rate", "cart", "user", "limit", "order", "price", "stock"}[v.r.IntN(8)] + fmt.Sprint(v.names)
}

// function returns a new function of 5 to 14 lines, including lines that every function
// contains.
func (v *village) function(by string) []authored {
	name := v.word()
	lines := []string{"", "// " + name + " computes the " + v.word() + ".", "func " + name + "(x int) (int, error) {"}
	for range 1 + v.r.IntN(3) {
		switch v.r.IntN(4) {
		case 0:
			lines = append(lines, "\ty, err := load"+v.word()+"(x)", "\tif err != nil {", "\t\treturn 0, err", "\t}", "\tx += y")
		case 1:
			lines = append(lines, "\tfor i := range x {", "\t\tx += "+v.word()+"[i]", "\t}")
		case 2:
			lines = append(lines, "\tx = max(x, "+v.word()+")")
		default:
			lines = append(lines, "\tif x < 0 {", "\t\treturn 0, errors.New('negative "+v.word()+"')", "\t}")
		}
	}
	lines = append(lines, "\treturn x, nil", "}")
	out := []authored{}
	for _, l := range lines {
		out = append(out, authored{l, by})
	}
	return out
}

// functions returns the indices of the blank lines that start the functions in a file, and
// the file's end.
func functions(lines []authored) []int {
	at := []int{}
	for i, l := range lines {
		if l.text == "" {
			at = append(at, i)
		}
	}
	return append(at, len(lines))
}

func (v *village) file() string {
	names := []string{}
	for name := range v.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names[v.r.IntN(len(names))]
}

// edited records an edit of a session in one of the formats that harnesses use.
func (v *village) edited(by, name string, from, to int, lines []authored) {
	old := v.files[name]
	now := slices.Concat(old[:from], lines, old[to:])
	a, b := max(0, from-1), min(len(old), to+1) // including the surrounding lines
	before, after := texts(old[a:b]), texts(slices.Concat(old[a:from], lines, old[to:b]))
	v.store(name, now)
	quoted := func(s string) string { q, _ := json.Marshal(s); return string(q) }
	path := quoted(v.path(name))
	way := v.r.IntN(24)
	if len(old) == 0 {
		way = -1
	}
	switch {
	case way < 0:
		v.call(by, "Write", fmt.Sprintf(`{"file_path":%s,"content":%s}`, path, quoted(after)), fmt.Sprintf(`{"type":"create","filePath":%s,"structuredPatch":[]}`, path))
	case way < 6: // with only the two strings
		v.call(by, "Edit", fmt.Sprintf(`{"file_path":%s,"old_string":%s,"new_string":%s}`, path, quoted(before), quoted(after)), `"done"`)
	case way < 10:
		v.call(by, "MultiEdit", fmt.Sprintf(`{"file_path":%s,"edits":[{"old_string":%s,"new_string":%s}]}`, path, quoted(before), quoted(after)), `"done"`)
	case way < 11: // with the whole file
		v.call(by, "Write", fmt.Sprintf(`{"file_path":%s,"content":%s}`, path, quoted(texts(now))), `"done"`)
	default: // with the patch
		hunk := []string{}
		for _, l := range old[max(0, from-3):from] {
			hunk = append(hunk, " "+l.text)
		}
		for _, l := range old[from:to] {
			hunk = append(hunk, "-"+l.text)
		}
		for _, l := range lines {
			hunk = append(hunk, "+"+l.text)
		}
		for _, l := range old[to:min(len(old), to+3)] {
			hunk = append(hunk, " "+l.text)
		}
		patch, _ := json.Marshal(hunk)
		tool, input := "Edit", fmt.Sprintf(`{"file_path":%s,"old_string":"x","new_string":"y"}`, path)
		if way < 15 {
			tool, input = "Write", fmt.Sprintf(`{"file_path":%s,"content":%s}`, path, quoted(texts(now)))
		}
		v.call(by, tool, input, fmt.Sprintf(`{"filePath":%s,"type":"update","structuredPatch":[{"lines":%s}]}`, path, patch))
	}
}

// work makes one change by a session, or by a person if by is "".
func (v *village) work(by string) {
	change := func(name string, from, to int, lines []authored) {
		if by != "" {
			v.edited(by, name, from, to, lines)
			return
		}
		v.store(name, slices.Concat(v.files[name][:from], lines, v.files[name][to:]))
	}
	name := v.file()
	lines := v.files[name]
	at := functions(lines)
	k := v.r.IntN(len(at))
	switch n := v.r.IntN(10); {
	case n < 5 || k == len(at)-1: // add a function
		change(name, at[k], at[k], v.function(by))
	case n < 6 && len(at) > 4: // delete a function
		change(name, at[k], at[k+1], nil)
	case n < 7: // add a file
		name := v.word() + ".go"
		v.store(name, []authored{{"package shop", by}})
		fresh := v.function(by)
		v.store(name, nil)
		change(name, 0, 0, append([]authored{{"package shop", by}}, fresh...))
	default: // change a line in a function
		i := at[k] + 3
		change(name, i, i+1, []authored{{"\tx *= " + v.word() + " + " + v.word(), by}})
	}
}

// format changes the white space, quotes and line breaks of a file.
func (v *village) format(name string) {
	out := []authored{}
	for _, l := range v.files[name] {
		l.text = strings.ReplaceAll(strings.ReplaceAll(l.text, "\t", "    "), "'", `"`)
		if head, tail, ok := strings.Cut(l.text, "(x int) "); ok {
			out = append(out, authored{head + "(", l.by}, authored{"    x int,", l.by}, authored{") " + tail, l.by})
			continue
		}
		out = append(out, l)
	}
	v.store(name, out)
}

// rename renames a file.
func (v *village) rename(name string) {
	to := v.word() + ".go"
	v.git("mv", name, to)
	v.files[to] = v.files[name]
	delete(v.files, name)
}

// move moves a function to another file.
func (v *village) move() {
	from, to := v.file(), v.file()
	at := functions(v.files[from])
	if from == to || len(at) < 3 {
		return
	}
	moved := slices.Clone(v.files[from][at[0]:at[1]])
	v.store(from, slices.Delete(slices.Clone(v.files[from]), at[0], at[1]))
	v.store(to, append(slices.Clone(v.files[to]), moved...))
}

// round creates a branch on which sessions work, and merges it into main in one of several
// ways.
func (v *village) round(n int) {
	branch := fmt.Sprintf("work%d", n)
	v.git("checkout", "-q", "-b", branch)
	for range 1 + v.r.IntN(2) {
		by := v.session()
		for range 1 + v.r.IntN(3) {
			v.work(by)
		}
		if v.r.IntN(4) == 0 {
			v.work("") // a manual change in the same commit
		}
		message := "Work of " + by
		if v.r.IntN(2) == 0 {
			v.committed(by, message)
		} else {
			v.git("add", "-A")
			v.later()
			v.git("commit", "-q", "--allow-empty", "-m", message)
			v.call(by, "Bash", fmt.Sprintf(`{"command":"git add -A && git commit -q -m '%s'"}`, message), `{"stdout":"","stderr":""}`)
		}
	}
	switch v.r.IntN(3) {
	case 0: // squash
		v.git("checkout", "-q", "main")
		v.git("merge", "-q", "--squash", branch)
		v.later()
		v.git("commit", "-q", "--allow-empty", "-m", "Squashed "+branch)
	case 1: // rebase onto another commit
		v.git("checkout", "-q", "main")
		write(v.t, v.path("notes"), branch+"\n")
		v.commit("Notes " + branch)
		v.git("checkout", "-q", branch)
		v.later()
		v.git("rebase", "-q", "main")
		v.git("checkout", "-q", "main")
		v.git("merge", "-q", "--ff-only", branch)
	default:
		v.git("checkout", "-q", "main")
		v.git("merge", "-q", "--no-ff", "-m", "Merge "+branch, branch)
	}
	switch v.r.IntN(6) {
	case 0:
		v.format(v.file())
		v.commit("Format")
	case 1:
		v.rename(v.file())
		v.commit("Rename")
	case 2:
		v.move()
		if v.git("status", "--porcelain") != "" {
			v.commit("Move")
		}
	case 3:
		v.work("")
		v.commit("By hand")
	}
}

// A person changes a line between lines of an edit, and a formatter breaks a moved line.
func TestLinesBehindAChangedLineAndBrokenLinesInAnotherFileKeepTheirAuthor(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	write(t, filepath.Join(s.root, "sum.go"), "package shop\n")
	s.commit("Begin")
	s.prompt("s1", "write the function of the total")
	load, changed := "\ty, err := loadPrices(x)\n", "\tx *= rate + fee\n"
	head := "package shop\n\n// total sums the prices of the cart.\nfunc total(x int) (int, error) {\n"
	tail := "\tif err != nil {\n\t\treturn 0, err\n\t}\n\tx += y\n\treturn x, nil\n}\n"
	path, _ := json.Marshal(filepath.Join(s.root, "sum.go"))
	after, _ := json.Marshal(head + load + tail)
	s.call("s1", "Edit", fmt.Sprintf(`{"file_path":%s,"old_string":"package shop\n","new_string":%s}`, path, after), `"done"`)
	write(t, filepath.Join(s.root, "sum.go"), head+changed+tail)
	write(t, filepath.Join(s.root, "moved.go"), "package shop\n\nfunc total(\n    x int,\n) (int, error) {\n    return x * 19, nil\n}\n")
	s.commit("By hand")
	c := s.open()
	for _, line := range []int{4, 6, 7, 8, 9, 10, 11} {
		want(t, ask(t, c, "sum.go", line), "s1 edit: write the function of the total")
	}
	want(t, ask(t, c, "sum.go", 5))
	for _, line := range []int{3, 4, 5} {
		want(t, ask(t, c, "moved.go", line), "s1 edit: write the function of the total")
	}
	want(t, ask(t, c, "moved.go", 6))
}

// TestOfAHundredLinesTheAuthorIsKnown compares the results of why with the known authors
// of a repository. In it, sessions edit and commit, with or without output, and people
// rebase, squash, rename, format and move code.
func TestOfAHundredLinesTheAuthorIsKnown(t *testing.T) {
	t.Parallel()
	seed := uint64(13)
	fmt.Sscan(os.Getenv("WHY_SEED"), &seed)
	v := &village{shop: newShop(t), r: rand.New(rand.NewPCG(seed, 7)), files: map[string][]authored{}}
	v.store("cart.go", append([]authored{{"package shop", ""}}, v.function("")...))
	v.commit("Begin")
	for n := range 16 {
		v.round(n)
	}
	c := v.open()
	type place struct {
		name string
		line int
	}
	var all []place
	for name, lines := range v.files {
		for i, l := range lines {
			if l.text != "" {
				all = append(all, place{name, i + 1})
			}
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return strings.Compare(fmt.Sprintf("%s %05d", a.name, a.line), fmt.Sprintf("%s %05d", b.name, b.line))
	})
	v.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	right, wrong, unknown, person := 0, 0, 0, 0
	for _, p := range all[:100] {
		truth := v.files[p.name][p.line-1]
		w := ask(t, c, p.name, p.line)
		got := ""
		if w.Confidence == why.ByCommit || w.Confidence == why.ByText {
			got = w.Sessions[0].SessionID
		}
		if w.Confidence == why.ByHistory {
			t.Errorf("%s:%d is guessed by time: %+v", p.name, p.line, w)
		}
		switch {
		case got == truth.by:
			right++
			if got == "" {
				person++
			}
		case got == "":
			unknown++
			t.Logf("unknown: %s:%d %q is of %q; %v", p.name, p.line, truth.text, truth.by, w.Missing)
		default:
			wrong++
			t.Logf("wrong: %s:%d %q is of %q, not of %q (%s)", p.name, p.line, truth.text, truth.by, got, w.Confidence)
		}
	}
	t.Logf("%d right (%d of a person), %d unknown, %d wrong, of %d lines in %d files by %d sessions", right, person, unknown, wrong, len(all), len(v.files), v.agents)
	if right < 95 || wrong > 1 {
		t.Errorf("%d right, %d wrong", right, wrong)
	}
	v.linesAgree(c)
}

// linesAgree compares Lines, which handles all lines of a page in one pass, with Ask and
// with the known authors. Lines does not read other files, so it may find less.
func (v *village) linesAgree(c *cairn.Cairn) {
	v.t.Helper()
	wrong, lost, all := 0, 0, 0
	for name, known := range v.files {
		text := []string{}
		for _, l := range known {
			text = append(text, l.text)
		}
		const page = 40
		for first := 1; first <= len(text); first += page {
			w, err := c.WhyLines(v.t.Context(), why.LinesArgs{File: v.path(name), Text: text, First: first, Count: page})
			if err != nil || len(w.Of) != min(page, len(text)-first+1) {
				v.t.Fatalf("%s from %d: %+v, %v", name, first, w, err)
			}
			for i, of := range w.Of {
				if of < 0 {
					if text[first-1+i] != "" {
						v.t.Errorf("%s:%d has no origin", name, first+i)
					}
					continue
				}
				all++
				got, one := w.Origins[of], ask(v.t, c, name, first+i)
				by, author := "", ""
				if got.Session != nil && (got.Confidence == why.ByCommit || got.Confidence == why.ByText) {
					by = got.Session.SessionID
				}
				if len(one.Sessions) > 0 && (one.Confidence == why.ByCommit || one.Confidence == why.ByText) {
					author = one.Sessions[0].SessionID
				}
				if (got.Commit == nil) != (one.Commit == nil) || got.Commit != nil && got.Commit.Hash != one.Commit.Hash {
					v.t.Errorf("%s:%d is of commit %+v, alone of %+v", name, first+i, got.Commit, one.Commit)
				}
				switch truth := known[first-1+i].by; {
				case by == truth:
				case by == "":
					lost++
				case by != author:
					wrong++
					v.t.Logf("%s:%d is of %q, not of %q as alone, nor of %q (%s)", name, first+i, truth, author, by, got.Confidence)
				}
			}
		}
	}
	v.t.Logf("pages: %d lines, %d without their author, %d with another than alone", all, lost, wrong)
	if wrong > all/100 || lost > all/8 {
		v.t.Errorf("of %d lines %d have no author and %d another than alone", all, lost, wrong)
	}
}
