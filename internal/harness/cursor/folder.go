package cursor

import (
	"os"
	"path/filepath"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
)

// folder returns the folder of a file's session, "" if the path does not have the expected
// form. The file's lines do not contain the folder. The path is
// ~/.cursor/projects/NAME/agent-transcripts, where NAME is the workspace's path with hyphens for
// all characters except letters and digits.
//
// folder takes the path from the files that Cursor keeps next to the transcripts. Else it
// takes the known project with this name, or the only folder on disk with it. Otherwise it returns
// the folder NAME itself, which becomes the project's name.
func folder(file string, roots []string) string {
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

// workspacePath returns the workspace's path in the files next to the transcripts, "" if they do
// not contain it.
func workspacePath(project string) string {
	trusted := lazyjson.TrimSpace(harness.ReadBeginning(filepath.Join(project, ".workspace-trusted")))
	if lazyjson.NewChecker().IsObject(trusted) {
		if path := harness.FolderPath(trusted.Get("workspacePath").Text()); strings.TrimSpace(path) != "" {
			return path
		}
	}
	const mark = "workspacePath="
	log := strings.ToValidUTF8(string(harness.ReadBeginning(filepath.Join(project, "worker.log"))), "\uFFFD")
	for line := range strings.Lines(log) {
		if _, path, ok := strings.Cut(line, mark); ok {
			return harness.FolderPath(strings.TrimSpace(strings.ReplaceAll(path, "\x00", "\uFFFD")))
		}
	}
	return ""
}

// hyphened returns Cursor's name for a path. Each run of characters other than letters and digits
// becomes one hyphen, without hyphens at the ends. Case is folded, because the case of drive
// letters varies.
func hyphened(path string) string {
	words := strings.FieldsFunc(strings.ToLower(path), func(r rune) bool {
		return r < 0x80 && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
	return strings.Join(words, "-")
}

// folderSearch finds folders by the names that Cursor derives from their paths.
type folderSearch struct {
	left  int // number of folders that may still be read
	found []string
}

func newFolderSearch() *folderSearch { return &folderSearch{left: 200} }

// find returns the only folder with a name. Without one, or with several, it returns "".
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
