package cairn_test

import (
	"os"
	"regexp"
	"testing"
)

// TestNoStatementOfTheStoreIsPreparedAnewAtEveryRun: SQLite does so with one whose
// LIMIT is a bare parameter (see store.Tx.Exec). The hub's statements are PostgreSQL's
// too, which cannot tell the type of one with a sign.
func TestNoStatementOfTheStoreIsPreparedAnewAtEveryRun(t *testing.T) {
	t.Parallel()
	bare := regexp.MustCompile(`LIMIT [?:@]`)
	for _, path := range productFiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := bare.FindString(string(text)); found != "" {
			t.Errorf("%s has %q: write LIMIT +?", path, found)
		}
	}
}
