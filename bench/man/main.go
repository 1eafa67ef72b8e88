// Man writes the man pages of cairn: one page for each command, from the same descriptions
// as --help.
//
//	man DIR
//
// The generator of cobra requires two Markdown packages that build tables when a program
// starts. Therefore it is in this module and not in cairn.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"cairn/internal/cli"
	"cairn/internal/cli/command"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "man: requires one folder for the pages")
		os.Exit(2)
	}
	if err := writePages(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// writePages writes the page of every command to a folder, which is created if it is missing.
func writePages(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Root(&command.Process{Getenv: func(string) string { return "" }})
	root.DisableAutoGenTag = true // omits the line with the date of generation
	asMarkdown(root)
	return doc.GenManTree(root, &doc.GenManHeader{Title: "CAIRN", Section: "1", Source: "cairn", Manual: "cairn"}, dir)
}

// asMarkdown converts the plain texts of a command and its subcommands to Markdown, which the
// generator expects.
func asMarkdown(c *cobra.Command) {
	c.Long, c.Short = markdownOf(c.Long), markdownOf(c.Short)
	for _, sub := range c.Commands() {
		asMarkdown(sub)
	}
}

// columns matches a line of a table or a list: it is indented or has columns.
var columns = regexp.MustCompile(`(?m)^ +\S|^\S+(?: \S+)*? {2,}\S`)

// special escapes the characters that Markdown would not print.
var special = strings.NewReplacer(`*`, `\*`, `_`, `\_`, `<`, `\<`, `>`, `\>`, `[`, `\[`, `]`, `\]`)

// markdownOf converts a plain text to Markdown. Paragraphs with a table or a list keep their
// lines; all others are filled.
func markdownOf(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if columns.MatchString(p) {
			paragraphs[i] = "    " + strings.ReplaceAll(p, "\n", "\n    ")
		} else {
			paragraphs[i] = special.Replace(p)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
