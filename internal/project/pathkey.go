package project

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"cairn/internal/project/gitdir"

	"golang.org/x/text/unicode/norm"
)

// PathKey returns the key of a file, independent of worktree, spelling and separator
// (observations §2). It is the path relative to the root of the nearest worktree of the
// place's repository, with slashes and in Unicode NFC. For a file outside the repository
// it is the absolute path in the same form. The root itself is ".", and "" gives "". A
// file in a repository nested inside the worktree, such as a submodule, is relative to
// the worktree as well.
//
// It only reads which folders contain a .git. If these no longer exist, .worktrees/NAME
// and .claude/worktrees/NAME count as worktrees. Call Within first if the row belongs to
// another project than the place's own.
func (p Location) PathKey(file string) string {
	if file == "" {
		return ""
	}
	if !isForeign(file) {
		file = slashed(file)
	}
	abs := p.Absolute(file)
	if p.Identity != "" && len(abs) <= gitdir.MaxPath {
		if rel, ok := p.relative(abs); ok {
			return nfc(rel)
		}
	}
	return nfc(withoutLostWorktree(slashed(abs)))
}

// Within returns the place as seen from the project of its rows. If the place is in no
// repository, because it no longer exists or the session left the repository, paths are
// relative to the project's repository. Otherwise it returns p.
func (p Location) Within(q Project) Location {
	if q.Identity == "" || q.Identity == p.Identity {
		return p
	}
	deeper := false
	if p.Gone {
		_, deeper = below(q.Root, p.Cwd)
		deeper = deeper && len(q.Root) > len(p.Root)
	}
	if p.Identity == "" || deeper {
		p.Identity, p.Root = q.Identity, q.Root
	}
	return p
}

// relative returns the path of a file inside the place's repository.
func (p Location) relative(abs string) (rel string, ok bool) {
	for _, root := range [...]string{p.Root, p.mainRoot()} {
		if rel, ok := below(root, abs); ok {
			return p.inside(root, abs, rel), true
		}
	}
	if root, ok := p.worktreeAbove(abs, ""); ok {
		return below(root, abs)
	}
	real := ""
	if rel, ok := below(p.Cwd, abs); ok && p.real != p.Cwd {
		real = filepath.Join(p.real, filepath.FromSlash(rel))
	} else if dir, _ := gitdir.Physical(filepath.Dir(abs)); dir != filepath.Dir(abs) {
		real = filepath.Join(dir, filepath.Base(abs))
	}
	if root, ok := p.worktreeAbove(real, ""); ok {
		return below(root, real)
	}
	return "", false
}

// inside corrects a path relative to root if the file is in another worktree of the
// repository that is below root.
func (p Location) inside(root, abs, rel string) string {
	if nested, ok := p.worktreeAbove(abs, root); ok {
		if r, ok := below(nested, abs); ok {
			return r
		}
	}
	if lost := lostWorktree(root, abs, true); lost != root {
		if r, ok := below(lost, abs); ok {
			return r
		}
	}
	return rel
}

// worktreeAbove climbs from a path to the nearest root of a worktree of the
// place's repository, up to but excluding the folder stop.
func (p Location) worktreeAbove(path, stop string) (root string, ok bool) {
	if len(path) > gitdir.MaxPath || !filepath.IsAbs(path) {
		return "", false
	}
	for range gitdir.MaxLevels {
		if path == stop || len(path) < len(stop) {
			return "", false
		}
		if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
			if r, ok := gitdir.At(path); ok && r.Identity == p.Identity {
				return path, true
			}
		}
		parent := filepath.Dir(path)
		if parent == path {
			return "", false
		}
		path = parent
	}
	return "", false
}

// lostWorktree returns the root of a former worktree below root that contained path, or
// root if there is none. The last element of a file's path is never part of the
// worktree's name.
func lostWorktree(root, path string, isFile bool) string {
	rel, ok := below(root, path)
	if !ok {
		return root
	}
	main, worktree, ok := splitWorktree("/" + rel)
	if !ok {
		return root
	}
	in := strings.TrimSuffix(filepath.ToSlash(root), "/")
	if lost, ok := lostName(in+main, in+worktree, ("/" + rel)[len(worktree):], isFile); ok {
		return filepath.FromSlash(lost)
	}
	return root
}

// maxWorktreeName is the maximum number of folders in the name of a former worktree,
// because names like team/task are common.
const maxWorktreeName = 3

// lostName returns the folder of a former worktree whose name begins with folder and may
// continue in rest. The name ends before the first element that also exists in the main
// worktree. If no element exists there, a working directory directly below folder is the
// worktree, else folder is. ok is false if the folder exists. All paths have slashes.
func lostName(main, folder, rest string, isFile bool) (lost string, ok bool) {
	parts := strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })
	last := folder
	for n := 0; ; n++ {
		if gitdir.PathIsGone(last) {
			if n < len(parts) && !gitdir.PathIsGone(main+"/"+parts[n]) {
				return last, true
			}
			if lost == "" {
				lost = last
			}
			if n == 1 && len(parts) == 1 && isNested(folder) {
				return last, true
			}
		}
		if left := len(parts) - n; n == maxWorktreeName-1 || left == 0 || left == 1 && isFile {
			return lost, lost != ""
		}
		last += "/" + parts[n]
	}
}

// isNested reports whether names of worktrees next to a folder may contain slashes;
// Claude Code's own never do.
func isNested(folder string) bool { return path.Base(path.Dir(folder)) == ".worktrees" }

// After returns the place as seen by a session that was in q before: below a former
// worktree, its known root is used.
func (p Location) After(q Location) Location {
	if p.Gone && q.Gone && p.Identity != "" && p.Identity == q.Identity && len(q.Root) > len(p.Root) {
		if _, deeper := below(q.Root, p.real); deeper {
			p.Root = q.Root
		}
	}
	return p
}

// withoutLostWorktree removes former worktree folders from an absolute path with slashes.
func withoutLostWorktree(path string) string {
	main, worktree, ok := splitWorktree(path)
	if !ok || len(path) > gitdir.MaxPath {
		return path
	}
	lost, ok := lostName(main, worktree, path[len(worktree):], true)
	if !ok {
		return path
	}
	if rest := strings.TrimSuffix(main, "/") + path[len(lost):]; rest != "" {
		return rest
	}
	return "/"
}

// splitWorktree finds the customary worktree folders in a path: main is the part
// before the first, worktree ends with the first folder of the last one's name. Both
// are slash paths.
func splitWorktree(path string) (main, worktree string, ok bool) {
	path = slashed(path)
	for rest := 0; ; {
		i := strings.Index(path[rest:], "worktrees/")
		if i < 0 {
			return main, worktree, ok
		}
		start := rest + i
		rest = start + len("worktrees/")
		head, found := strings.CutSuffix(path[:start], "/.claude/")
		if !found {
			head, found = strings.CutSuffix(path[:start], "/.")
		}
		name, _, _ := strings.Cut(path[rest:], "/")
		if !found || name == "" {
			continue
		}
		if rest += len(name); !ok {
			main = head
			if main == "" {
				main = "/"
			}
		}
		worktree, ok = path[:rest], true
	}
}

// below returns path relative to root, with slashes; "." for root itself. It does not
// access the disk.
func below(root, path string) (rel string, ok bool) {
	if root == "" {
		return "", false
	}
	root, path = strings.TrimSuffix(nfc(slashed(root)), "/"), nfc(slashed(path))
	if len(path) < len(root) {
		return "", false
	}
	head, rest := path[:len(root)], path[len(root):]
	if head != root && (runtime.GOOS != "windows" || !strings.EqualFold(head, root)) {
		return "", false
	}
	if rest == "" || rest == "/" {
		return ".", true
	}
	return rest[1:], rest[0] == '/'
}

func slashed(path string) string { return strings.ReplaceAll(path, `\`, "/") }

// nfc returns s in Unicode NFC. Most strings skip the conversion.
func nfc(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return norm.NFC.String(s)
		}
	}
	return s
}
