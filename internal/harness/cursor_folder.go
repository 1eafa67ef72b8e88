package harness

import (
	"os"
	"path/filepath"
	"strings"
)

// cursorFolder returns the folder of a file's session. Its lines do not contain it; the file
// is in ~/.cursor/projects/NAME/agent-transcripts, and NAME is the path of the
// workspace with a hyphen for whatever is no letter or digit. What Cursor keeps
// next to the transcripts contains the path; else it is that of a known project which
// has this name, or of the only folder that has it; else the folder NAME itself
// stands for it, so that the project is called so.
func cursorFolder(file string, roots []string) string {
	folder := filepath.Dir(filepath.Clean(file))
	for range 3 {
		if filepath.Base(folder) == "agent-transcripts" {
			break
		}
		folder = filepath.Dir(folder)
	}
	if file == "" || filepath.Base(folder) != "agent-transcripts" {
		return ""
	}
	project := filepath.Dir(folder)
	if path := workspacePath(project); path != "" {
		return path
	}
	name := hyphened(filepath.Base(project))
	for _, root := range roots {
		if hyphened(root) == name {
			return root
		}
	}
	if path := newFolderSearch().find(name); path != "" {
		return path
	}
	return strings.ToValidUTF8(project, "\uFFFD")
}

// workspacePath returns the path in the files next to the transcripts, "" if
// they contain none.
func workspacePath(project string) string {
	trusted := trimSpace(beginningOf(filepath.Join(project, ".workspace-trusted")))
	if isObject(lenient(nil), trusted) {
		if path := cursorPath(text(get(trusted, "workspacePath"))); strings.TrimSpace(path) != "" {
			return path
		}
	}
	const mark = "workspacePath="
	log := strings.ToValidUTF8(string(beginningOf(filepath.Join(project, "worker.log"))), "\uFFFD")
	for line := range strings.Lines(log) {
		if _, path, ok := strings.Cut(line, mark); ok {
			return cursorPath(strings.TrimSpace(strings.ReplaceAll(path, "\x00", "\uFFFD")))
		}
	}
	return ""
}

// hyphened is how Cursor names a path: runs of anything but letters and digits
// become one hyphen, none at the ends. Case is folded, for drive letters vary.
func hyphened(path string) string {
	words := strings.FieldsFunc(strings.ToLower(path), func(r rune) bool {
		return r < 0x80 && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
	return strings.Join(words, "-")
}

// folderSearch looks for folders by what Cursor makes of their paths.
type folderSearch struct {
	left  int // folders that may still be read
	found []string
}

func newFolderSearch() *folderSearch { return &folderSearch{left: 200} }

// find returns the only folder that has a name, "" if there is none or several.
func (s *folderSearch) find(name string) string {
	s.below(string(filepath.Separator), name)
	if drive, rest, ok := strings.Cut(name, "-"); ok && len(drive) == 1 && os.PathSeparator == '\\' {
		s.below(drive+`:\`, rest)
	}
	if len(s.found) != 1 {
		return ""
	}
	return s.found[0]
}

func (s *folderSearch) below(folder, name string) {
	if s.left == 0 || len(s.found) > 1 {
		return
	}
	s.left--
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, entry := range entries {
		own := hyphened(entry.Name())
		rest, ok := strings.CutPrefix(name, own)
		if own == "" || !ok || rest != "" && rest[0] != '-' {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue
		}
		if rest == "" {
			s.found = append(s.found, path)
			continue
		}
		s.below(path, rest[1:])
	}
}
