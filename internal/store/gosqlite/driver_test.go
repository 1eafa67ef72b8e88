package gosqlite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

func TestTheCodeOfJoinedErrorsIsThatOfTheFirst(t *testing.T) {
	t.Parallel()
	db, err := Driver{}.Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, syntax := db.Prepare("nonsense")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("of others"), 0},
		{syntax, 1},
		{fmt.Errorf("wrapped: %w", syntax), 1},
		{errors.Join(sqlite3.FULL, syntax), 13},
		{errors.Join(syntax, sqlite3.FULL), 1},
		{errors.Join(errors.New("of others"), sqlite3.IOERR_SHMSIZE), 10 | 19<<8},
	} {
		if code, message := Code(c.err); code != c.want || (message == "") != (code == 0) {
			t.Errorf("%v has the code %d %q, want %d", c.err, code, message, c.want)
		}
	}
}
