package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"cairn/internal/cli"
	"cairn/internal/cli/command"
)

// TestEveryCommandHasAManPage checks that each page has the command's name, its examples and
// its own flags.
func TestEveryCommandHasAManPage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	if err := writePages(dir); err != nil {
		t.Fatal(err)
	}
	pages := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		data, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		page := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fP`, "", `\fI`, "").Replace(string(data))
		if !strings.HasPrefix(page, ".nh\n.TH") || !strings.Contains(page, ".SH NAME\n"+name+" - ") {
			t.Errorf("%s begins with %.80q", name, page)
		}
		for _, flag := range strings.Fields(c.LocalFlags().FlagUsages()) {
			if strings.HasPrefix(flag, "--") && !strings.Contains(page, strings.TrimRight(flag, ".,;")) {
				t.Errorf("%s has no flag %s", name, flag)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				check(sub)
			}
		}
	}
	check(cli.Root(&command.Process{Getenv: func(string) string { return "" }}))
	if pages < 120 {
		t.Errorf("there are %d pages", pages)
	}
}

// TestManPagesKeepTablesAndSpecialCharacters checks texts that Markdown would join or drop.
func TestManPagesKeepTablesAndSpecialCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"one\ntwo":                              "one\ntwo",
		"prefix* and <KIND>/a_b":                `prefix\* and \<KIND\>/a\_b`,
		"--check    compares\n--reindex  reads": "    --check    compares\n    --reindex  reads",
		"Run it:\n\n    cairn *":                "Run it:\n\n        cairn *",
	} {
		if got := markdownOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
