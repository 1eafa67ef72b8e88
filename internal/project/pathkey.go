package project

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// PathKey is the one key of a file, whatever worktree, spelling or separator it
// comes in (observations §2): its path relative to the root of the nearest
// worktree of the place's repository that holds it, in slashes and Unicode NFC;
// for a file outside that repository its absolute path in the same form; "" for
// "". The root itself is ".". A file in a repository nested inside the worktree,
// such as a submodule, is relative to the worktree anyway.
//
// Nothing is read but which folders hold a .git. Where those are gone,
// .worktrees/NAME and .claude/worktrees/NAME count as worktrees. Call Within
// first if the row belongs to another project than the place's own.
func (p Location) PathKey(file string) string {
	if file == "" {
		return ""
	}
	if !isForeign(file) {
		file = slashed(file)
	}
	abs := p.Absolute(file)
	if p.Identity != "" && len(abs) <= maxPath {
		if rel, ok := p.relative(abs); ok {
			return nfc(rel)
		}
	}
	return nfc(withoutLostWorktree(slashed(abs)))
}

// Within is the place as seen from the project to which its rows belong: where
// it lies in no repository of its own, because it is gone or because the session
// stepped outside, the project's repository is the one that paths are relative
// to. Otherwise it is p itself.
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

// relative is the path of a file inside the place's repository.
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
	} else if dir, _ := physical(filepath.Dir(abs)); dir != filepath.Dir(abs) {
		real = filepath.Join(dir, filepath.Base(abs))
	}
	if root, ok := p.worktreeAbove(real, ""); ok {
		return below(root, real)
	}
	return "", false
}

// inside corrects a path relative to root if the file lies in another worktree
// of the repository, itself below root.
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
	if len(path) > maxPath || !filepath.IsAbs(path) {
		return "", false
	}
	for range maxLevels {
		if path == stop || len(path) < len(stop) {
			return "", false
		}
		if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
			if r, ok := repositoryAt(path); ok && r.identity == p.Identity {
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

// lostWorktree is the root of the worktree folder that held path below root and
// is gone; root itself if there is none. The last part of the path of a file is not
// taken for a part of the worktree's name.
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

// maxWorktreeName is how many folders the name of a lost worktree may have, for
// branches like team/task are common names.
const maxWorktreeName = 3

// lostName is the folder of a lost worktree whose name begins with folder and goes
// on, it may be, in rest: up to the part that stands in the main worktree as well.
// If none does, a working directory directly below folder is the worktree, else
// folder is. ok is false if what there is of it exists. All are slash paths.
func lostName(main, folder, rest string, isFile bool) (lost string, ok bool) {
	parts := strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })
	last := folder
	for n := 0; ; n++ {
		if pathIsGone(last) {
			if n < len(parts) && !pathIsGone(main+"/"+parts[n]) {
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

// isNested reports whether worktrees beside a folder may be named with slashes:
// Claude Code's own never are.
func isNested(folder string) bool { return path.Base(path.Dir(folder)) == ".worktrees" }

// After is the place as seen by a session that was in q before: deeper in a lost
// worktree, its root is the one that was known.
func (p Location) After(q Location) Location {
	if p.Gone && q.Gone && p.Identity != "" && p.Identity == q.Identity && len(q.Root) > len(p.Root) {
		if _, deeper := below(q.Root, p.real); deeper {
			p.Root = q.Root
		}
	}
	return p
}

// withoutLostWorktree drops the worktree folders that are gone from an absolute
// path in slashes.
func withoutLostWorktree(path string) string {
	main, worktree, ok := splitWorktree(path)
	if !ok || len(path) > maxPath {
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

// below is path relative to root, in slashes; "." for root itself. It does not
// look at the disk.
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

// nfc is norm.NFC with a way past it for what needs none.
func nfc(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return norm.NFC.String(s)
		}
	}
	return s
}
