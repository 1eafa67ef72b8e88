package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"path/filepath"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
)

// folder returns the folder of a file's session. Its lines do not contain it, but its path in
// ~/.gemini/tmp identifies it. The path contains a folder with the project's name, whose file
// .project_root contains the project's path. In earlier versions the folder's name is the SHA-256
// of that path.
//
// folder compares the hash with all candidates. These are the folders in the session, the list of
// projects and the store, and the parent folders of files in calls. If none matches, it returns a
// path below the folder of all projects, which need not exist. The path ends with the folder's own
// name, or with the first digits of the hash.
func (g *chat) folder() string {
	project := project(g.options.Path)
	if root := strings.TrimSpace(string(harness.ReadBeginning(filepath.Join(project, ".project_root")))); project != "" && root != "" {
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

// project returns a project's folder in ~/.gemini/tmp for the path of one of its files, ""
// if the file is somewhere else.
func project(file string) string {
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

// isHash reports whether a name is a hash, which earlier versions used for a project's folder.
func isHash(name string) bool {
	return len(name) == 64 && strings.Trim(name, "0123456789abcdef") == ""
}

// hashes reports whether hash is the hash of a folder or the start of it.
func hashes(folder, hash string) bool {
	if len(hash) < 16 || folder == "" {
		return false
	}
	sum := sha256.Sum256([]byte(folder))
	return strings.HasPrefix(hex.EncodeToString(sum[:]), hash)
}

// listedProjects returns the folders in Gemini CLI's list of projects.
func listedProjects(file string) (roots []string) {
	list := lazyjson.TrimSpace(harness.ReadBeginning(file))
	if !lazyjson.NewChecker().IsObject(list) {
		return nil
	}
	for name := range list.Get("projects").Members() {
		roots = append(roots, string(name))
	}
	return roots
}

// foldersIn returns the parent folders of the absolute file paths in the calls of messages.
func foldersIn(messages lazyjson.Value) (folders []string) {
	const enough = 1000
	seen := map[string]struct{}{}
	for m := range messages.Elements() {
		for call := range m.Get("toolCalls").Elements() {
			for _, v := range call.Get("args").Pick("file_path", "absolute_path", "path", "dir_path", "directory") {
				file := v.Text()
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

// above returns the parent folder of a file, with either path separator; "" at the top.
func above(file string) string {
	i := strings.LastIndexAny(file, `/\`)
	if i < 0 {
		return ""
	}
	return file[:i]
}
