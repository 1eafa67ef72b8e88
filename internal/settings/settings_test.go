package settings

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/observation"
)

// TestARepositoryLowersLimitsAndRaisesNone reads a repository's file with and without a
// user's file.
func TestARepositoryLowersLimitsAndRaisesNone(t *testing.T) {
	t.Parallel()
	const unset = -1
	for _, c := range []struct{ user, repo, want int }{
		{unset, unset, unset},
		{unset, 5, 5},
		{unset, 0, 0},
		{unset, 25, 20}, // above the default and below the 30 of a recovery: set, so that it is not raised
		{unset, 30, unset},
		{unset, 1000, unset},
		{7, unset, 7},
		{7, 5, 5},
		{7, 1000, 7},
		{50, 40, 40},
	} {
		dir, root := t.TempDir(), t.TempDir()
		write := func(path, table string, limit int) {
			if limit != unset {
				put(t, path, "["+table+"context]\nlocal_limit = "+strconv.Itoa(limit)+"\n"+
					"cross_limit = "+strconv.Itoa(limit/2)+"\nmax_tokens = "+strconv.Itoa(40*limit)+"\n", 0o600)
			}
		}
		write(filepath.Join(dir, "config.toml"), "observations.", c.user)
		write(filepath.Join(root, ".cairn.toml"), "", c.repo)
		s, err := Read(dir, root, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := func(p *int) int {
			if p == nil {
				return unset
			}
			return *p
		}
		half, tokens := c.want/2, 40*c.want
		switch c.want {
		case unset:
			half, tokens = unset, 0
		case 20:
			tokens = 700 // the default maximum
		}
		if l, x := got(s.Context.LocalLimit), got(s.Context.CrossLimit); l != c.want || x != half || s.Context.MaxTokens != tokens {
			t.Errorf("user %d, repository %d: %d, %d and %d tokens", c.user, c.repo, l, x, s.Context.MaxTokens)
		}
	}
}

// TestARepositoryDecidesNothingElse sets every existing key in a repository's file, in the
// less strict direction.
func TestARepositoryDecidesNothingElse(t *testing.T) {
	t.Parallel()
	dir, root := t.TempDir(), t.TempDir()
	put(t, filepath.Join(dir, "config.toml"), `
[observations]
max_db_size_mb = 100
[observations.assist]
off = true
max_ms = 3
[observations.context]
off = true
suppress_cross_project = true
[observations.dedup]
window_seconds = 10
[observations.retention]
output_days = 3
[observations.retention.days]
command = 7
[observations.capture]
output = "errors"
`, 0o600)
	put(t, filepath.Join(root, ".cairn.toml"), `
unknown = [1, 2]
key_file = "/tmp/x"
max_db_size_mb = 1
[store]
key_file = "/tmp/x"
[filter]
level = "relaxed"
allow = ["x"]
[assist]
off = false
max_ms = 1000
[context]
off = false
suppress_cross_project = false
[dedup]
window_seconds = 100000
[retention]
output_days = "never"
[retention.days]
command = 1
[capture]
output = "digest"
[unknown_table]
x = 1
`, 0o600)
	user, err := Read(dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	both, err := Read(dir, root, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := user.ObservationConfig("")
	if err != nil {
		t.Fatal(err)
	}
	got, err := both.ObservationConfig("")
	if err != nil {
		t.Fatal(err)
	}
	if got.AssistTime != 0 || got.MaxBytes != want.MaxBytes || got.DedupWindow != want.DedupWindow || !got.Limits.Off ||
		!got.Limits.SuppressCross || got.Retention["command"] != 7 ||
		got.Output != observation.OutputErrors || got.OutputDays != 3 || both.KeyFile != "" || len(both.Filter.Allow) != 0 || both.Filter.Level != "" {
		t.Errorf("%+v", got)
	}
}

func TestSettingsOfTheWrongTypeRefuseEverything(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[assist]\noff = 'yes'", "[assist]\nmax_ms = 1.5", "[context]\nlocal_limit = '3'", "[context]\noff = 1", "[capture]\nexclude = 'x'",
		"[capture]\noff = 'true'", "[filter]\nextra_patterns = [1]", "max_db_size_mb = 'x'", "assist = 1",
		"[capture]\noutput = 'some'", "[capture]\noutput = true",
	} {
		dir, root := t.TempDir(), t.TempDir()
		put(t, filepath.Join(root, ".cairn.toml"), text, 0o600)
		if _, err := Read(dir, root, nil); !fault.HasCode(err, Code) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func put(t testing.TB, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
