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

	"cairn/internal/cli/command"
)

var update = flag.Bool("update", false, "write docs/commands.md")

// TestThePageOfCommandsIsThatOfTheProgram compares docs/commands.md with the descriptions
// of the commands; -update writes the page.
func TestThePageOfCommandsIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	p := &command.Process{Getenv: func(string) string { return "" }}
	var page strings.Builder
	page.WriteString("# Commands\n\nEvery command explains itself with `--help`, and every command that reads takes `--json`. Exit codes: 0 for done, 1 when the\n" +
		"answer is no or only a part was done, 2 for wrong usage and failures.\n\n" +
		"Completions for bash, zsh, fish and PowerShell are built in, and `make man` writes a man page for every command to\n" +
		"`bin/man`:\n\n" +
		"```console\n$ cairn completion bash > cairn.bash    # then: source cairn.bash\n$ cairn completion --help              # how to load completions in each shell\n$ cairn version                         # also as JSON, with --json\n```\n\n" +
		"This page is generated from the descriptions of the commands: `go test ./internal/cli -run Page -update`.\n")
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
		t.Errorf("docs/commands.md differs from the descriptions of the commands (%v); -update writes it", err)
	}
}

// describe writes a row for a command and each of its subcommands.
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

// TestEveryCommandHasAHeading in the help, except commands for programs.
func TestEveryCommandHasAHeading(t *testing.T) {
	t.Parallel()
	root := Root(&command.Process{Args: []string{"--help"}, Getenv: func(string) string { return "" }})
	if len(root.Commands()) < 40 {
		t.Fatalf("there are %d commands", len(root.Commands()))
	}
	for _, c := range root.Commands() {
		if c.GroupID == "" && !slices.Contains([]string{"record", "version", "help", "completion"}, c.Name()) && !c.Hidden {
			t.Errorf("%s has no heading", c.Name())
		}
	}
}
