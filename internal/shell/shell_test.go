package shell

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestReadShellFindsGitAndGitHub(t *testing.T) {
	t.Parallel()
	push, commit, github := Use{Push: true}, Use{Commit: true}, Use{Github: true}
	for _, c := range []struct {
		name, line string
		want       Use
	}{
		{"plain", "git push", push},
		{"with arguments", "git push -u origin main 2>&1", push},
		{"forced", "git push --force-with-lease", push},
		{"any directory", "/usr/local/bin/git push", push},
		{"exe", "git.EXE push", push},
		{"Windows path, quoted", `"C:\Program Files\Git\bin\git.exe" push`, push},
		{"Windows path, bare", `C:\Git\bin\git.exe push`, push},
		{"after and", "go test ./... && git push", push},
		{"after or", "false || git push", push},
		{"after semicolon", "true;git push", push},
		{"after pipe", "yes | git push", push},
		{"after both-streams pipe", "yes |& git push", push},
		{"after newline", "true\ngit push", push},
		{"after CRLF", "true\r\ngit push\r\n", push},
		{"after background", "sleep 1 & git push", push},
		{"subshell", "(cd x && git push)", push},
		{"subshell in a subshell", "( ( git push ) )", push},
		{"group", "{ git push; }", push},
		{"substitution", "out=$(git push 2>&1)", push},
		{"backticks", "out=`git push`", push},
		{"process substitution", "tee log < <(git push)", push},
		{"condition", "if git push; then echo done; fi", push},
		{"branch of a condition", "if true; then git push; else :; fi", push},
		{"negated", "! git push", push},
		{"loop", "for r in a b; do git push $r; done", push},
		{"case branch", "case $x in a) git push;; esac", push},
		{"function body", "up() { git push; }", push},
		{"assignments", `A=1 GIT_SSH_COMMAND="ssh -i key" B[0]=x C+=y git push`, push},
		{"assignment with substitution", "A=$(date) git push", push},
		{"array, then command", "a=(git commit); git push", push},
		{"sudo", "sudo -E -u deploy git push", push},
		{"sudo with long options", "sudo --user deploy --group=ops -- git push", push},
		{"env", "env -i -u HOME PATH=/bin git push", push},
		{"env with a dash", "env - A=1 git push", push},
		{"time", "time -p git push", push},
		{"time with a file", "/usr/bin/time -f %e -o out git push", push},
		{"command", "command git push", push},
		{"nohup", "nohup git push &", push},
		{"wrappers in a row", "sudo nohup time env A=1 git push", push},
		{"directory option", "git -C ../other push", push},
		{"configuration option", "git -c push.default=current -c a=b push", push},
		{"separate directories", "git --git-dir x/.git --work-tree x --namespace n push", push},
		{"joined directories", "git --git-dir=x/.git --work-tree=x --exec-path=/opt push", push},
		{"flags", "git --no-pager --bare -P push", push},
		{"redirection before", ">log 2>&1 git push", push},
		{"redirection between", "git 2>/dev/null push &>log", push},
		{"continued line", "git \\\n  push", push},
		{"quoted program and subcommand", `"git" 'push'`, push},
		{"alias bypassed", `\git push`, push},
		{"after a here-document", "cat <<EOF > f\ntext\nEOF\ngit push", push},
		{"after a quoted here-document", "cat <<'THE END' > f\nit's \"odd\nTHE END\ngit push", push},
		{"after an indented here-document", "cat <<-EOF\n\ttext\n\tEOF\ngit push", push},
		{"after two here-documents", "paste <<A <<B\n1\nA\n2\nB\ngit push", push},
		{"after a parenthesis in a here-document", "x=$(cat <<EOF\n)\nEOF\n) && git push", push},
		{"after a shift", "echo $((1<<2)); git push", push},
		{"after a here-string", "cat <<<EOF\ncat <<< EOF\ngit push", push},
		{"after arithmetic", "((n = 1 << 2))\ngit push", push},
		{"after a here-document with CRLF", "cat <<EOF\r\nx\r\nEOF\r\ngit push", push},
		{"after a number sign in a word", "echo a#b && git push", push},
		{"after a continued quotation", "git \"pu\\\nsh\"", push},
		{"redirection of both streams between", "git &>log push;&>log ls", push},
		{"after a comment", "# it's here\ngit push # done", push},
		{"after an escaped quote", `echo \" && git push`, push},
		{"after an ANSI-C quote", `echo $'it\'s' && git push`, push},
		{"after braces", `echo "${x:-"a"}" ${y:-'}'} "${z:-it's}" && git push`, push},
		{"after find", `find . -name '*.go' -exec ls {} \; && git push`, push},
		{"dry run behind the options", "git push -- --dry-run", push},
		{"dry run as an argument", "git push -o --dry-run", push},
		{"dry run in a joined argument", "git push -on", push},

		{"commit", `git commit -m "git push later; gh pr view"`, commit},
		{"commit without hooks", "git commit -n -m x", commit},
		{"commit, message like an option", "git commit -m --dry-run", commit},
		{"commit, message like an option behind flags", "git commit -am --dry-run", commit},
		{"commit, joined message", "git commit -mn", commit},
		{"commit, message from a here-document",
			"git add -A && git commit -m \"$(cat <<'EOF'\nfix: don't \"git push\"\n\n- gh ) pr\nEOF\n)\"", commit},
		{"commit, end word and parenthesis joined", "git commit -m \"$(cat <<-EOF\n\tgit push\n\tEOF)\" && gh x",
			Use{Commit: true, Github: true}},
		{"commit and push", "git commit -qm \"$(cat <<'EOF'\n\"\nEOF\n)\" && git push", Use{Push: true, Commit: true}},

		{"gh", "gh pr view 3 --json title | jq .", github},
		{"gh with a token", "GH_TOKEN=$T /opt/gh.exe api x", github},
		{"gh in an assignment", "n=$(gh pr list | wc -l)", github},

		{"stash", "git stash push -m wip", Use{}},
		{"stash with options", "git -C x stash push", Use{}},
		{"branch", "git checkout push && git branch commit", Use{}},
		{"other subcommands", "git push-it; git commit-tree x; git subtree push", Use{}},
		{"echo", "echo git push", Use{}},
		{"double-quoted", `echo "a; git push && gh pr view"`, Use{}},
		{"single-quoted", "echo 'a\ngit commit\n'", Use{}},
		{"grep", "git log --grep='git push' | grep -c 'git commit'", Use{}},
		{"here-document", "cat <<EOF\ngit push\ngh x\nEOF", Use{}},
		{"here-document without end", "cat <<EOF\ngit push", Use{}},
		{"here-document with CRLF", "cat <<EOF\r\ngit push\r\nEOF\r\nls", Use{}},
		{"quoted substitution", `echo "$(git push)"`, Use{}},
		{"quoted backticks", "gh-pages --body \"run `git push` now\"", Use{}},
		{"comment", "ls # git push\n# ; git commit", Use{}},
		{"dry run", "git push --dry-run origin main", Use{}},
		{"dry run, short", "git push -n", Use{}},
		{"dry run among flags", "git push -fn", Use{}},
		{"dry run, shortened", "git commit --dry-r", Use{}},
		{"dry run of a commit", "git commit -m x --dry-run", Use{}},
		{"help", "git help push; git --help push; git --version", Use{}},
		{"looked up", "command -v git push; command -v gh", Use{}},
		{"elsewhere", "ssh host git push; bash -c 'git push'", Use{}},
		{"argument", "xgit push; which gh; man git", Use{}},
		{"directory named git", "bin/git/push", Use{}},
		{"default value", "echo ${x:-git push}", Use{}},
		{"array", "a=(git push)", Use{}},
		{"arithmetic", "echo $((git - push))", Use{}},
		{"loop variable", "for git in push; do :; done", Use{}},
		{"redirection target", "echo > git push", Use{}},
		{"unbalanced quote", `echo "git push; git push`, Use{}},
		{"no subcommand", "git; git -C; git -c x", Use{}},
		{"empty", "", Use{}},
		{"operators only", " && ;| \n&", Use{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Read(c.line, "Bash"); got != c.want {
				t.Errorf("readShell(%q) = %+v, want %+v", c.line, got, c.want)
			}
		})
	}
}

func TestReadShellPowerShell(t *testing.T) {
	t.Parallel()
	push, github := Use{Push: true}, Use{Github: true}
	for _, c := range []struct {
		name, line string
		want       Use
	}{
		{"plain", "git push", push},
		{"call operator", `& "C:\Program Files\Git\cmd\git.exe" push`, push},
		{"backslash at the end of a string", `Set-Location "C:\src\"; git push`, push},
		{"bare path", `C:\Git\git.exe push`, push},
		{"script block", `if ($LASTEXITCODE -eq 0) {git push}`, push},
		{"environment", `$env:GIT_EDITOR = "true"; git push`, push},
		{"assigned", "$out = git push 2>&1", push},
		{"subexpression", `Write-Host $(git push)`, push},
		{"computed argument", "git (Get-Verb) ; git push (Get-Branch) -f", push},
		{"continued line", "git `\n  push", push},
		{"doubled quotes", `echo "a ""b"" c"; git push`, push},
		{"escaped quote", "echo \"a `\" b\"; git push", push},
		{"after a block comment", "<# it's #> gh pr view", github},
		{"after a here-string", "@'\nit's\n'@ | Out-File x; gh pr view", github},
		{"here-string", "@\"\ngit push\n\"@ | Out-File x", Use{}},
		{"here-string without end", "@'\ngit push", Use{}},
		{"block comment", "<# git push\ngh #>", Use{}},
		{"string", `Write-Host "git push; gh"`, Use{}},
		{"quoted subexpression", `Write-Host "$(git push)"`, Use{}},
		{"dry run", "git push --dry-run", Use{}},
		{"escape at the end", "git push`", push},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Read(c.line, "PowerShell"); got != c.want {
				t.Errorf("readShell(%q) = %+v, want %+v", c.line, got, c.want)
			}
		})
	}
}

func TestReadShellOnlyCairn(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"cairn search x":                      true,
		"/opt/bin/cairn context --json":       true,
		`"C:\Tools\cairn.exe" status`:         true,
		"CAIRN_DB=x cairn search y":           true,
		"sudo cairn doctor":                   true,
		"cairn search x; cairn status":        true,
		"cairn search x 2>/dev/null > out":    true,
		"cairn search x || cairn search y":    true,
		"if cairn search x; then cairn z; fi": true,
		"for i in 1 2; do cairn pin $i; done": true,
		"# look\ncairn search x":              true,
		"cairn mark <<EOF\nls\nEOF":           true,
		`cairn mark "ls; rm x"`:               true,
		"cairn search x | head":               false,
		"cd x && cairn search y":              false,
		"cairn mark \"$(ls)\"":                false,
		"cairn mark `ls`":                     false,
		"cairn search $(ls)":                  false,
		"X=$(ls) cairn search y":              false,
		"cairn search y; $EDITOR":             false,
		"cairn search y; ${EDITOR} z":         false,
		"cairn search y; $(which ls)":         false,
		"cairns search y":                     false,
		"echo cairn":                          false,
		"command -v cairn":                    false,
		"X=1":                                 false,
		"# cairn":                             false,
		"":                                    false,
	} {
		if got := Read(line, "Bash").OnlyCairn; got != want {
			t.Errorf("%q: only cairn is %v, want %v", line, got, want)
		}
	}
}

func TestReadShellStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	padding := strings.Repeat("#", maxShellBytes-len("\ngit push"))
	if !Read(padding+"\ngit push", "Bash").Push {
		t.Error("what ends at the limit is not read")
	}
	if Read(padding+"#\ngit push", "Bash").Push {
		t.Error("what ends behind the limit is read")
	}
}

func TestReadShellStopsAtItsDepth(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string {
		return strings.Repeat("$(", depth) + "git commit" + strings.Repeat(")", depth) + "; git push"
	}
	if use := Read(nested(maxShellDepth-1), "Bash"); !use.Commit || !use.Push {
		t.Errorf("at the limit: %+v", use)
	}
	if use := Read(nested(maxShellDepth), "Bash"); use.Commit || use.Push {
		t.Errorf("behind the limit: %+v", use)
	}
}

// hostileLines returns lines that a naive parser needs quadratic time for.
func hostileLines() map[string]string {
	lines := map[string]string{}
	for _, unit := range []string{
		"(", ")", "$(", "\"$(", "${", "`", "'", "\"", "((", "x=()", "a=b ", "<<a ", "<<a\n", "\\", "a\\\n", "{ ", "cd a && ",
		"sudo ", "-u ", "git -c ", "$(cat <<" + strings.Repeat("e", 64) + "\n", ";", "1>", "<#", "@'\n", "$'", "${\"$(", "=(\"$(",
	} {
		lines[unit] = strings.Repeat(unit, maxShellBytes/len(unit))
	}
	lines["long end word"] = "$(cat <<" + strings.Repeat("e", maxShellBytes/2) + strings.Repeat("\n", maxShellBytes/2)
	lines["many end words"] = strings.Repeat("<<a ", maxShellBytes/8) + strings.Repeat("\na", maxShellBytes/4)
	return lines
}

func TestHostileLinesAreReadToTheEnd(t *testing.T) {
	t.Parallel()
	for name, line := range hostileLines() {
		for _, tool := range []string{"Bash", "PowerShell"} {
			if use := Read(line, tool); use.Push || use.Commit || use.Github {
				t.Errorf("%s of %q: %+v", tool, name, use)
			}
		}
		if Normal(line) == "" {
			t.Errorf("%q has no normal form", name)
		}
	}
}

func TestNormalCommand(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"go test ./...":                       "go test ./...",
		"  go   test\t./... \n":               "go test ./...",
		"cd /src && go test":                  "go test",
		"cd \"my dir\" && cd b && go test":    "go test",
		"A=1 B='x y' go test":                 "go test",
		"cd x && A=1 go test":                 "go test",
		"A=1 cd x && B=2 go test":             "go test",
		"A=$(date) go test":                   "go test",
		"A=1; go test":                        "go test",
		"A=1 && go test":                      "go test",
		"cd x &&\n  go test | tail":           "go test | tail",
		"cd \"$(dirname \"$x\")\" && go test": "go test",
		"go test && cd x && ls":               "go test && cd x && ls",
		"cd x; go test":                       "cd x; go test",
		"cd x || go test":                     "cd x || go test",
		"cd x":                                "cd x",
		"cd x &&":                             "cd x &&",
		"A=1":                                 "A=1",
		"echo A=1 cd x && ls":                 "echo A=1 cd x && ls",
		"(cd x && go test)":                   "(cd x && go test)",
		"(a); A=1 go test":                    "(a); A=1 go test",
		"cdx && go test":                      "cdx && go test",
		"\"A=1\" go test":                     "\"A=1\" go test",
		"1A=1 go test":                        "1A=1 go test",
		"export A=1 && go test":               "export A=1 && go test",
		"":                                    "",
		" \n ":                                "",
	} {
		if got := Normal(line); got != want {
			t.Errorf("normalCommand(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestNormalCommandIgnoresWhatStandsBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z./-]{1,8}`), 1, 6).Draw(t, "words")
		if words[0] == "cd" {
			t.Skip("the directory is what is dropped")
		}
		before := rapid.SliceOf(rapid.SampledFrom([]string{"A=1", "_b2='x  y'", `C="$(date)"`, "cd d &&", "cd 'a b' &&\n", "D= "})).
			Draw(t, "before")
		space := rapid.SampledFrom([]string{" ", "  ", "\t"}).Draw(t, "space")
		got := Normal(space + strings.Join(append(before, words...), space) + space)
		if want := strings.Join(words, " "); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

func TestPushIsFoundBehindAnyPrefix(t *testing.T) {
	t.Parallel()
	pick := func(t *rapid.T, label string, from ...string) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(from), 0, 3).Draw(t, label), "")
	}
	rapid.Check(t, func(t *rapid.T) {
		sub := rapid.SampledFrom([]string{"push", "commit", "stash push", "log push"}).Draw(t, "subcommand")
		line := pick(t, "before", "ls; ", "cd 'x' && ", "echo \"git push; gh\"\n", "# it's\n", "cat <<E\ngit commit\nE\n", "(a) ; ") +
			pick(t, "assignments", "A=1 ", `B="x; y" `, "C=$(ls) ") +
			pick(t, "wrappers", "sudo -u x ", "env A=b ", "time -p ", "nohup ", "command ") +
			rapid.SampledFrom([]string{"git ", "/a/b/git ", "git.exe ", `"git" `}).Draw(t, "program") +
			pick(t, "options", "-C x ", "-c a=b ", "--no-pager ", "--git-dir=x ", "--work-tree x ") +
			sub + pick(t, "after", " -v", " 2>&1", " 'a b'", " | tail", " && ls")
		want := Use{Push: sub == "push", Commit: sub == "commit"}
		if got := Read(line, "Bash"); got != want {
			t.Fatalf("%q: %+v, want %+v", line, got, want)
		}
	})
}

func FuzzShellWords(f *testing.F) {
	for _, seed := range []string{
		"git push", `git commit -m "$(cat <<'EOF'` + "\nit's\nEOF\n)\"", "a=(b) c & d |& e", "x ${y:-\"$(z)\"} $'\\''",
		"<<-A <<'B C' <<\"D\"\n\tA\nB C\nD\n", "C:\\git.exe push", "if ! git push; then gh; fi", "((1<<2)) `a \\`b\\``",
		"@'\nx\n'@ <# y #> `\n", "2>&1 >(cat) <<<x", "\\", "$", "$(", "\xff\x00",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, line string, powerShell bool) {
		for _, c := range simpleCommands(line, powerShell) {
			if len(c.words) == 0 || c.start > c.after || c.after > len(line) {
				t.Fatalf("impossible command %+v", c)
			}
			for _, w := range c.words {
				if w.plain > len(w.text) || w.end > len(line) || w.end < c.start {
					t.Fatalf("impossible word %+v", w)
				}
			}
		}
		normal := Normal(line)
		if normal != strings.Join(strings.Fields(normal), " ") || (normal == "") != (strings.TrimSpace(line) == "") {
			t.Fatalf("normalCommand(%q) = %q", line, normal)
		}
		tool := map[bool]string{true: "PowerShell", false: "Bash"}[powerShell]
		quoted := []string{
			"echo '" + strings.ReplaceAll(line, "'", "") + "'",
			`echo "` + strings.NewReplacer(`"`, "", `\`, "").Replace(line) + `"`,
			"# " + strings.ReplaceAll(line, "\n", " "),
		}
		if !powerShell && !strings.Contains(line, "the end") {
			quoted = append(quoted, fmt.Sprintf("cat <<'the end'\n%s\nthe end\n", line))
		}
		for _, q := range quoted {
			if use := Read(q, tool); use.Push || use.Commit || use.Github {
				t.Fatalf("%q: %+v", q, use)
			}
		}
	})
}

func BenchmarkShellHostile(b *testing.B) {
	for name, line := range hostileLines() {
		b.Run(fmt.Sprintf("%.12q", name), func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				Read(line, "Bash")
			}
		})
	}
}

func BenchmarkReadShell(b *testing.B) {
	line := "cd /src/app && git add -A && git commit -m \"$(cat <<'EOF'\nfix: handle the empty list\n\nIt said \"none\".\nEOF\n)\" 2>&1 | tail -3"
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		Read(line, "Bash")
	}
}
