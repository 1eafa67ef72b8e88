package mail

import (
	"strings"
	"testing"

	"cairn/internal/mail/mailtest"
)

func TestSlugs(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("abc/", 60)
	for path, wanted := range map[string]string{
		"/w/My App":       "w-my-app",
		"/w//a__b.c/":     "w-a-b-c",
		"/":               "project",
		"/é/ü":            "project",
		"/9":              "9",
		`C:\Users\Ann\p1`: "c-users-ann-p1",
		long:              strings.Repeat("abc-", 27) + "a-" + HashHex(long, 10),
	} {
		if got := slugOf(path); got != wanted {
			t.Errorf("%q: %q, want %q", path, got, wanted)
		}
	}
	mailtest.Want(t, "length of a long slug", len(slugOf(long)), maxSlug)
	mailtest.Want(t, "a short one", slugged("My.App", "x"), "my-app-"+HashHex("x", 10))
	mailtest.Want(t, "a nameless one", slugged("é", "x"), "project-"+HashHex("x", 10))
}
