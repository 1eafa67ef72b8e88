package cairn_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// productFiles returns the Go files of the product, with slashes, sorted by name. It omits
// tests, test packages and nested modules.
func productFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		name := d.Name()
		switch {
		case d.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "dist" || isModule(file)):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(path.Dir(file), "test"):
			files = append(files, file)
		}
		return nil
	})
	if err != nil || len(files) < 300 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
