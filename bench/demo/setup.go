package main

import (
	"context"
	"path/filepath"
	"strings"
)

// howToUse is the last part of the demo: commands to try.
func (d *demo) howToUse(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.heading("On your own sessions")
	d.say("Put the program into a folder of your PATH, because agents' settings will contain its path. Then connect your agents:")
	d.line("\n  alias cairn=%s", shellWord(d.home.program))
	for _, c := range []struct{ command, what string }{
		{"init --dry-run", "shows what would change in your agents' settings"},
		{"init", "connects them and reads the sessions they kept"},
		{"search 'failing test'", "finds what happened, in all projects"},
		{"context", "prints the context that the next session in this folder will get"},
		{"doctor", "checks that everything works"},
		{"uninstall", "restores every settings file"},
	} {
		d.line("  cairn %-22s  %s", c.command, d.dim(c.what))
	}
	d.blank()
	d.say("`make demo ARGS=--mine` runs the demo on your own transcripts without touching ~/.cairn.")
	return nil
}

// shellWord quotes a path as one word of a command line.
func shellWord(path string) string {
	path = filepath.ToSlash(path)
	if strings.ContainsAny(path, " '&;()$`\"*?[]<>|") {
		return `"` + strings.NewReplacer("`", "\\`", `"`, `\"`, `$`, `\$`).Replace(path) + `"`
	}
	return path
}
