package harness

import (
	"strings"

	"cairn/internal/harness/lazyjson"
	"cairn/internal/regular"
)

// FolderPath returns a folder's path in the system's form. On Windows, Cursor puts a slash before
// the drive.
func FolderPath(path string) string {
	if len(path) > 2 && path[0] == '/' && path[2] == ':' {
		return path[1:]
	}
	return path
}

// FirstFolder returns the first path of a list that is not blank, or "".
func FirstFolder(roots lazyjson.Value) string {
	for root := range roots.Elements() {
		if path := FolderPath(root.Text()); strings.TrimSpace(path) != "" {
			return path
		}
	}
	return ""
}

// MaxSmallFile limits how much of a file with project paths is read.
const MaxSmallFile = 1 << 20

// ReadBeginning returns the beginning of a small file, nil if it cannot be read.
func ReadBeginning(file string) lazyjson.Value {
	b, err := regular.ReadHead(file, MaxSmallFile)
	if err != nil {
		return nil
	}
	return b
}
