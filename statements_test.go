package cairn_test

import (
	"os"
	"regexp"
	"testing"
)

// TestNoStatementOfTheStoreIsPreparedAtEveryRun checks the store's statements. SQLite
// prepares a statement at each run if its LIMIT is a bare parameter (see store.Tx.Exec).
// The hub's statements also run on PostgreSQL, which cannot infer the type of a parameter
// with a sign. They use another form.
func TestNoStatementOfTheStoreIsPreparedAtEveryRun(t *testing.T) {
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
