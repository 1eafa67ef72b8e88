package continuity

import (
	"cmp"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/observation"
)

// checkout is a folder in which sessions worked: a worktree or a clone.
type checkout struct {
	folder string // as named in the transcripts
	files  map[string]bool
	events int
	repo   *repository
}

// repository is the common replay of one or more checkouts.
type repository struct {
	name string // unique name of its folder
	root string // folder in which it is replayed
}

// folders maps every folder of the transcripts to its repository.
type folders struct {
	checkouts []*checkout // longest path first
}

// newFolders finds checkouts and repositories. For each repository it creates a folder with an
// empty .git below dir.
func newFolders(dir string, events []event) (*folders, error) {
	f := &folders{}
	f.find(events)
	for i := range events {
		f.count(&events[i])
	}
	return f, f.unite(dir)
}

// find creates a checkout for every working directory that is not inside another one. A
// worktree in a customary folder inside another checkout gets a separate checkout.
func (f *folders) find(events []event) {
	seen := map[string]bool{}
	for i := range events {
		seen[path.Clean(events[i].Cwd)] = true
	}
	shortest := slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	for _, cwd := range shortest {
		c := f.of(cwd)
		if c == nil || isWorktree(strings.TrimPrefix(cwd, c.folder)) {
			f.checkouts = slices.Insert(f.checkouts, 0, &checkout{folder: cwd, files: map[string]bool{}})
		}
	}
}

func isWorktree(below string) bool {
	return strings.HasPrefix(below, "/.worktrees/") || strings.HasPrefix(below, "/.claude/worktrees/")
}

// of returns the checkout that contains a path, or nil if no checkout contains it.
func (f *folders) of(file string) *checkout {
	for _, c := range f.checkouts {
		if file == c.folder || strings.HasPrefix(file, c.folder+"/") {
			return c
		}
	}
	return nil
}

// count adds the files of an event to the checkouts that contain them.
func (f *folders) count(e *event) {
	f.of(path.Clean(e.Cwd)).events++
	for _, call := range e.Calls {
		if !isFile(&call) {
			continue
		}
		file := call.Path
		if !path.IsAbs(file) {
			file = path.Join(e.Cwd, file)
		}
		if c := f.of(file); c != nil && file != c.folder {
			c.files[file[len(c.folder)+1:]] = true
		}
	}
}

// isFile reports whether a call is about one file and did not fail.
func isFile(c *observation.Call) bool {
	return c.Path != "" && !c.Failed &&
		(c.Action == observation.Read || c.Action == observation.Write || c.Action == observation.Edit)
}

// unite decides which checkouts share a repository and creates its folder, named after the
// checkout with the most events.
func (f *folders) unite(dir string) error {
	group := map[*checkout]*checkout{}
	for _, c := range f.checkouts {
		group[c] = c
	}
	for _, a := range f.checkouts {
		for _, b := range f.checkouts {
			if related(a, b) {
				from, into := group[a], group[b]
				for c, g := range group {
					if g == from {
						group[c] = into
					}
				}
			}
		}
	}
	busiest := slices.SortedStableFunc(slices.Values(f.checkouts), func(a, b *checkout) int {
		return cmp.Or(cmp.Compare(b.events, a.events), cmp.Compare(a.folder, b.folder))
	})
	made := map[*checkout]*repository{}
	names := map[string]bool{}
	for _, c := range busiest {
		r := made[group[c]]
		if r == nil {
			name := path.Base(c.folder)
			for names[name] {
				name += "-2"
			}
			names[name] = true
			r = &repository{name: name, root: filepath.Join(dir, name)}
			made[group[c]] = r
			if err := os.MkdirAll(filepath.Join(r.root, ".git"), 0o700); err != nil {
				return err
			}
		}
		c.repo = r
	}
	return nil
}

// related reports whether two checkouts share a repository: one is inside the other, or at
// least half of one's files are in both. If the folders have different names, three common
// files are required, since every repository has a README.
func related(a, b *checkout) bool {
	if strings.HasPrefix(a.folder, b.folder+"/") {
		return true
	}
	both := 0
	for file := range a.files {
		if b.files[file] {
			both++
		}
	}
	enough := 3
	if path.Base(a.folder) == path.Base(b.folder) {
		enough = 1
	}
	return both >= enough && 2*both >= min(len(a.files), len(b.files))
}

// move rewrites an event as if all checkouts were the single folder of their repository.
func (f *folders) move(e *event) {
	c := f.of(path.Clean(e.Cwd))
	e.repo, e.folder = c.repo, c.folder
	e.Cwd, e.Text = f.moved(e.Cwd), f.moved(e.Text)
	for i := range e.Calls {
		c := &e.Calls[i]
		for _, field := range []*string{&c.Path, &c.Command, &c.Pattern, &c.Description, &c.Prompt, &c.Error, &c.Stdout, &c.Stderr} {
			*field = f.moved(*field)
		}
	}
}

// moved replaces the checkouts' folders in a text. A path that only has such a folder as a
// prefix, like a sibling with a longer name, is unchanged.
func (f *folders) moved(text string) string {
	for _, c := range f.checkouts {
		text = replaceFolder(text, c.folder, c.repo.root)
	}
	return text
}

func replaceFolder(text, from, to string) string {
	at := strings.Index(text, from)
	if at < 0 {
		return text
	}
	var b strings.Builder
	for ; at >= 0; at = strings.Index(text, from) {
		rest := text[at+len(from):]
		b.WriteString(text[:at])
		if rest != "" && isNameByte(rest[0]) {
			b.WriteString(from)
		} else {
			b.WriteString(to)
		}
		text = rest
	}
	return b.String() + text
}

func isNameByte(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
