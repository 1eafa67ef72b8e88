package cairn_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNoStatementOfTheStoreIsPreparedAnewAtEveryRun: SQLite does so with one whose
// LIMIT is a bare parameter (see store.Tx.Exec). The hub's statements are PostgreSQL's
// too, which cannot tell the type of one with a sign.
func TestNoStatementOfTheStoreIsPreparedAnewAtEveryRun(t *testing.T) {
	t.Parallel()
	bare := regexp.MustCompile(`LIMIT [?:@]`)
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if found := bare.FindString(string(text)); found != "" {
			t.Errorf("%s has %q: write LIMIT +?", path, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
