package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/project/gitdir"
)

// FuzzLocate puts hostile text into every file that Locate reads.
func FuzzLocate(f *testing.F) {
	for _, s := range []struct{ pointer, commondir, config, cwd string }{
		{"gitdir: ../git/worktrees/w\n", "../..\n", "[remote \"origin\"]\nurl = https://u:p@h/x\n", ""},
		{"gitdir: ../git/worktrees/w\r\n", "\x00", "[remote \"origin\"", "sub/gone"},
		{"gitdir:" + strings.Repeat(" ", 9000), "../../../../../..", "[[\"\\", "\x00"},
		{"gitdir: .", ".", "url = x\n[remote \"origin\"]url=\"", "../.."},
		{"gitdir: \xff\xfe", "\xff", "\uFEFF[remote.origin]\nurl\n=\\", ".worktrees/x/y"},
		{"gitdir: ../wt/.git", "", "", strings.Repeat("é/", 70)},
		{"", "/", "[remote \"origin\"]\nurl = a\\\r\nb@c://d?e#f", ".git"},
	} {
		f.Add(s.pointer, s.commondir, s.config, s.cwd)
	}
	f.Fuzz(func(t *testing.T, pointer, commondir, config, cwd string) {
		base, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"wt/.git": pointer, "git/worktrees/w/commondir": commondir,
			"git/config": config, "git/worktrees/w/config": config, "wt/sub/HEAD": "",
		} {
			file := filepath.Join(base, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := Locate(filepath.Join(base, "wt")+"/"+cwd, base)
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsAbs(p.Cwd) || p.Cwd != filepath.Clean(p.Cwd) {
			t.Errorf("cwd %q", p.Cwd)
		}
		if err := checkID(p.Slug); err != nil {
			t.Errorf("slug %q: %v", p.Slug, err)
		}
		if p.Name == "" || !utf8.ValidString(p.Name) || utf8.RuneCountInString(p.Name) > maxName {
			t.Errorf("name %q", p.Name)
		}
		if p.Identity != "" && !gitdir.IsDir(p.Identity) {
			t.Errorf("identity %q is no folder", p.Identity)
		}
		if strings.ContainsAny(p.OriginURL, "\x00\n") || len(p.OriginURL) > maxOrigin {
			t.Errorf("origin %q", p.OriginURL)
		}
		if scheme, rest, ok := strings.Cut(p.OriginURL, "://"); ok && !strings.HasSuffix(strings.ToLower(scheme), "ssh") {
			if authority, _, _ := strings.Cut(rest, "/"); strings.Contains(authority, "@") {
				t.Errorf("origin %q contains a user", p.OriginURL)
			}
		}
		if checkID(p.Slug) != nil || checkID(suffixed(p.Slug, p.suffixes(), maxSuffixes-1)) != nil {
			t.Errorf("id %q", p.Slug)
		}
	})
}
