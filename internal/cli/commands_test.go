package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/commands.md")

// TestThePageOfCommandsIsThatOfTheProgram keeps docs/commands.md as the commands describe
// themselves; with -update it is written.
func TestThePageOfCommandsIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	p := &Process{Getenv: func(string) string { return "" }}
	var page strings.Builder
	page.WriteString("# Commands\n\nEvery command explains itself with `--help`, and every command that reads takes `--json`. Exit codes: 0 for done, 1 when the\n" +
		"answer is no or only a part was done, 2 for wrong usage and failures.\n\n" +
		"This page is made from the commands' own descriptions: `go test ./internal/cli -run Page -update`.\n")
	for _, g := range groups(p) {
		fmt.Fprintf(&page, "\n## %s\n\n| command | does |\n|---|---|\n", g.title)
		for _, c := range g.commands {
			describe(&page, "cairn", c)
		}
	}
	page.WriteString("\n## For programs\n\n| command | does |\n|---|---|\n")
	for _, c := range []*cobra.Command{recordCommand(p), versionCommand(p)} {
		describe(&page, "cairn", c)
	}
	path := filepath.Join("..", "..", "docs", "commands.md")
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != page.String() {
		t.Errorf("docs/commands.md differs from what the commands say (%v); -update writes it", err)
	}
}

// describe writes a row for a command and for each below it.
func describe(page *strings.Builder, parent string, c *cobra.Command) {
	use := strings.ReplaceAll(parent+" "+c.Use, "|", `\|`)
	if !strings.Contains(use, "[flags]") && c.Flags().HasFlags() {
		use += " [flags]"
	}
	fmt.Fprintf(page, "| `%s` | %s |\n", use, strings.ReplaceAll(c.Short, "|", `\|`))
	below := slices.Clone(c.Commands())
	for _, s := range below {
		if !s.Hidden {
			describe(page, parent+" "+c.Name(), s)
		}
	}
}

// TestEveryCommandStandsUnderAHeading of the help, those that agents call aside.
func TestEveryCommandStandsUnderAHeading(t *testing.T) {
	t.Parallel()
	root := newRoot(&Process{Args: []string{"--help"}, Getenv: func(string) string { return "" }})
	if len(root.Commands()) < 40 {
		t.Fatalf("there are %d commands", len(root.Commands()))
	}
	for _, c := range root.Commands() {
		if c.GroupID == "" && !slices.Contains([]string{"record", "version", "help", "completion"}, c.Name()) && !c.Hidden {
			t.Errorf("%s has no heading", c.Name())
		}
	}
}
