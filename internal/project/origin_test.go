package project

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/project/gitdir"
)

// TestOriginIsWhatGitReads compares each configuration with the real program.
func TestOriginIsWhatGitReads(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"plain":               "[remote \"origin\"]\n\turl = https://h/a\n",
		"carriage returns":    "[remote \"origin\"]\r\n\turl = https://h/a\r\n",
		"same line":           "[remote \"origin\"] url = x",
		"quoted":              "[remote \"origin\"]\nurl = \"a b;c\" # no\n",
		"half quoted":         "[remote \"origin\"]\nurl = a\" b \"c ; no\n",
		"escapes":             "[remote \"origin\"]\nurl = a\\\\b\\\"c\\tD\n",
		"continued":           "[remote \"origin\"]\nurl = ab\\\ncd\n",
		"continued with CR":   "[remote \"origin\"]\r\nurl = ab\\\r\ncd\r\n",
		"case":                "[REMOTE \"origin\"]\nURL=x",
		"old form":            "[remote.Origin]\nurl = x\n",
		"others first":        "[core]\nurl = no\n[remote \"up\"]\nurl = no\n[remote \"origin\"]\nfetch = +a:b\nurl = x\n",
		"comment":             "# [remote \"origin\"]\n[core]\n; url = no\n",
		"second of two":       "[remote \"origin\"]\nurl = x\nurl = y\n",
		"split section":       "[remote \"origin\"]\nfetch = a\n[core]\nbare = false\n[remote \"origin\"]\nurl = x\n",
		"key without value":   "[remote \"origin\"]\nprune\nurl = x\n",
		"bracket in the name": "[branch \"a]b\"]\nremote = origin\n[remote \"origin\"]\nurl = x\n",
		"escape in the name":  "[branch \"a\\\"]\\\\\"]\nurl = no\n[remote \"origin\"]\nurl = x\n",
		"longer key":          "[remote \"origin\"]\npushurl = no\nurlx = no\n",
		"byte order mark":     "\uFEFF[remote \"origin\"]\nurl = x\n",
		"spaces":              "  [remote   \"origin\"]  \n   url   =   x y   \n",
		"equals inside":       "[remote \"origin\"]\nurl = a=b\n",
		"none":                "[core]\n\tbare = true\n",
		"empty":               "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "config")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			// Exit status 1 means that there is no such key.
			out, err := exec.CommandContext(t.Context(), "git", "config", "--file", file, "--get-all", "remote.origin.url").Output()
			if status, ok := err.(*exec.ExitError); err != nil && (!ok || status.ExitCode() != 1) {
				t.Fatalf("git: %v", err)
			}
			want, _, _ := strings.Cut(string(out), "\n")
			if got := withoutCredentials(gitdir.Remote(gitdir.Config(dir))); got != want {
				t.Errorf("%q, Git reads %q", got, want)
			}
		})
	}
}

func TestBrokenConfigsHaveNoOrigin(t *testing.T) {
	t.Parallel()
	big := "[remote \"origin\"]\nurl = x" + strings.Repeat("y", maxOrigin)
	for name, text := range map[string]string{
		"unclosed header": "[remote \"origin\"\nurl = x", "unclosed name": "[remote \"origin]\nurl = x\n",
		"too long": big, "after the bound": strings.Repeat("#\n", gitdir.MaxConfig) + "[remote \"origin\"]\nurl = x\n",
		"only noise": "\x00=[[[]]]\\\"\n=\n", "a line break": "[remote \"origin\"]\nurl = a\\nb\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := withoutCredentials(gitdir.Remote(gitdir.Config(dir))); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := withoutCredentials(gitdir.Remote(gitdir.Config(t.TempDir()))); got != "" {
		t.Errorf("no config: %q", got)
	}
}
