package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"path/filepath"
	"strings"

	"cairn/internal/regular"
)

// maxRootFile is how much of a file is read that reports where projects lie.
const maxRootFile = 1 << 20

// folder returns the folder of a file's session. Its lines do not contain it, only its
// place in ~/.gemini/tmp does: a folder named after the project, in which
// .project_root contains the path, or in earlier versions after the SHA-256 of the
// path. The hash is tried on every folder that may be meant: those that the
// session, the list of projects and the store know, and those above the files
// that it used. If none fits, the project is known by the folder's own name, or
// by the first digits of the hash: a path below the folder of all projects that
// need not exist.
func (g *geminiChat) folder() string {
	project := geminiProject(g.options.Path)
	if root := strings.TrimSpace(string(beginningOf(filepath.Join(project, ".project_root")))); project != "" && root != "" {
		return strings.ToValidUTF8(root, "\uFFFD")
	}
	hash := g.hash
	if hash == "" && isHash(filepath.Base(project)) {
		hash = filepath.Base(project)
	}
	var listed []string
	if project != "" {
		listed = listedProjects(filepath.Join(project, "..", "..", "projects.json"))
	}
	for _, roots := range [...][]string{g.roots, g.options.Roots, listed} {
		for _, root := range roots {
			if hashes(root, hash) {
				return root
			}
		}
	}
	switch {
	case project != "" && !isHash(filepath.Base(project)):
		return strings.ToValidUTF8(project, "\uFFFD")
	case len(hash) < 8:
		return ""
	case project != "":
		return strings.ToValidUTF8(filepath.Join(filepath.Dir(project), "gemini-"+hash[:8]), "\uFFFD")
	}
	return string(filepath.Separator) + "gemini-" + hash[:8]
}

// geminiProject returns the folder of a project in ~/.gemini/tmp, by the path of one
// of its files; "" if the file lies somewhere else.
func geminiProject(file string) string {
	if file == "" {
		return ""
	}
	folder := filepath.Dir(filepath.Clean(file))
	if filepath.Base(file) == "logs.json" {
		return folder
	}
	for range 2 {
		if filepath.Base(folder) == "chats" {
			return filepath.Dir(folder)
		}
		folder = filepath.Dir(folder)
	}
	return ""
}

// isHash reports whether a name is one that earlier versions gave to a project's folder.
func isHash(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// hashes reports whether a hash, or the start of one, is that of a folder.
func hashes(folder, hash string) bool {
	if len(hash) < 16 || folder == "" {
		return false
	}
	sum := sha256.Sum256([]byte(folder))
	return strings.HasPrefix(hex.EncodeToString(sum[:]), hash)
}

// listedProjects returns the folders in Gemini CLI's list of projects.
func listedProjects(file string) (roots []string) {
	list := trimSpace(beginningOf(file))
	if !isObject(lenient(nil), list) {
		return nil
	}
	for name := range members(get(list, "projects")) {
		roots = append(roots, string(name))
	}
	return roots
}

// beginningOf returns the beginning of a small file, nil if there is none.
func beginningOf(file string) []byte {
	b, err := regular.ReadHead(file, maxRootFile)
	if err != nil {
		return nil
	}
	return b
}

// foldersIn returns the folders above the files that the calls of messages name by
// absolute paths.
func foldersIn(messages []byte) (folders []string) {
	const enough = 1000
	seen := map[string]struct{}{}
	for m := range elements(messages) {
		for call := range elements(get(m, "toolCalls")) {
			for _, v := range pick(get(call, "args"), "file_path", "absolute_path", "path", "dir_path", "directory") {
				file := text(v)
				if !path.IsAbs(file) && !filepath.IsAbs(file) {
					continue
				}
				for len(seen) < enough {
					if _, known := seen[file]; known || file == "" {
						break
					}
					seen[file] = struct{}{}
					folders = append(folders, file)
					file = above(file)
				}
			}
		}
	}
	return folders
}

// above returns the folder that holds a file, whichever separators its path has; ""
// at the top.
func above(file string) string {
	i := strings.LastIndexAny(file, `/\`)
	if i < 0 {
		return ""
	}
	return file[:i]
}
