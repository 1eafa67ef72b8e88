package githook

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cairn/internal/fault"
)

// staged returns git arguments for these tests, as if nothing were staged.
func staged() []string { return []string{"version"} }

func newGuard(t *testing.T, hook string) Guard {
	t.Helper()
	return Guard{Dir: filepath.Join(t.TempDir(), "hooks"), Hook: hook, Program: "/nowhere/cairn", Staged: staged()}
}

// install installs a guard. It starts no process meanwhile, and neither does write. A forked
// process would briefly hold the new files open for writing, and they could not be run.
func install(t *testing.T, g Guard) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must(t, g.Install())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, fault.As(err).Hint)
	}
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o600))
	must(t, os.Chmod(path, mode))
}

// tree lists everything below a folder: name, mode, link and text of each entry.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%q %v", rel, info.Mode())
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			fmt.Fprintf(&b, " -> %q %v", link, err)
		case d.Type().IsRegular():
			text, err := os.ReadFile(path)
			fmt.Fprintf(&b, " %q %v", text, err)
		}
		b.WriteByte('\n')
		return nil
	})
	must(t, err)
	return b.String()
}

func uninstall(t *testing.T, g Guard) (bool, []string) {
	t.Helper()
	removed, kept, err := g.Uninstall()
	must(t, err)
	return removed, kept
}

// cycle installs twice and uninstalls, and checks that only the folder is left.
func cycle(t *testing.T, g Guard) {
	t.Helper()
	must(t, os.MkdirAll(g.Dir, 0o755))
	before := tree(t, g.Dir)
	install(t, g)
	installed := tree(t, g.Dir)
	if l, err := g.Inspect(); err != nil || l.State != Guarded {
		t.Errorf("after installing it is %+v, %v", l, err)
	}
	install(t, g)
	if again := tree(t, g.Dir); again != installed {
		t.Errorf("installing again has changed\n%s\nto\n%s", installed, again)
	}
	if removed, kept := uninstall(t, g); !removed || len(kept) > 0 {
		t.Errorf("removed %v, kept %q", removed, kept)
	}
	if after := tree(t, g.Dir); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	if removed, kept := uninstall(t, g); removed || len(kept) > 0 {
		t.Errorf("once more removed %v, kept %q", removed, kept)
	}
}

func TestTheOriginalHookIsRestoredByteForByte(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a script": "#!/bin/sh\nexit 0\n", "empty": "", "binary": "\x7fELF\x00\x01\xff", "no newline": "#!/bin/sh\nexit 1",
		"Windows": "#!/bin/sh\r\necho x\r\n@echo off\r\nREM \x93\r\n\x1a", "a byte order mark": "\ufeff#!/bin/sh\n",
		"keeps an orig of its own": "#!/bin/sh\nexec \"$0.orig\"\n", "says it is ours": shebang + chainMark, "almost ours": chainText(PreCommit, "", false)[1:],
		"husky": "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"\n",
	} {
		for _, mode := range []fs.FileMode{0o755, 0o644, 0o700, 0o555} {
			t.Run(fmt.Sprint(name, mode), func(t *testing.T) {
				t.Parallel()
				if name == "says it is ours" {
					t.Skip("that is a chain which somebody has changed")
				}
				g := newGuard(t, PreCommit)
				write(t, g.Path(), text, mode)
				cycle(t, g)
			})
		}
	}
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		cycle(t, newGuard(t, PrePush))
	})
}

func TestLinksAreRestoredAsLinks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs rights there")
	}
	for _, target := range []string{"../scripts/pre-commit", "/nowhere/at all", "pre-commit.sample"} {
		g := newGuard(t, PreCommit)
		write(t, filepath.Join(g.Dir, "../scripts/pre-commit"), "#!/bin/sh\nexit 0\n", 0o755)
		must(t, os.MkdirAll(g.Dir, 0o755))
		must(t, os.Symlink(target, g.Path()))
		cycle(t, g)
	}
	g := newGuard(t, PreCommit) // the folder is a link
	real := filepath.Join(filepath.Dir(g.Dir), "real")
	write(t, filepath.Join(real, PreCommit), "#!/bin/sh\n", 0o755)
	must(t, os.Symlink("real", g.Dir))
	g.Dir += "/."
	cycle(t, g)
}

func TestOtherFilesAreNeverOverwritten(t *testing.T) {
	t.Parallel()
	g := newGuard(t, PreCommit)
	write(t, g.Path(), "#!/bin/sh\n# mine\n", 0o755)
	write(t, g.Path()+".orig", "an older one", 0o755)
	cycle(t, g)

	for _, name := range g.names() {
		write(t, filepath.Join(g.Dir, name), "taken", 0o644)
	}
	before, err := os.ReadFile(g.Path())
	must(t, err)
	if err := g.Install(); !fault.HasCode(err, CodeInUse) {
		t.Errorf("with every name taken: %v", err)
	}
	if after, err := os.ReadFile(g.Path()); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the hook is %q, %v", after, err)
	}
}

// A killed installation may leave any prefix of its steps.
func TestAnInstallationThatWasKilledCanBeRepeatedAndUndone(t *testing.T) {
	t.Parallel()
	const text = "#!/bin/sh\necho x\n"
	steps := []func(t *testing.T, g Guard){
		func(t *testing.T, g Guard) { must(t, os.MkdirAll(g.programs(), 0o755)) },
		func(t *testing.T, g Guard) { must(t, put(g.guard(), g.guardText())) },
		func(t *testing.T, g Guard) {
			was, err := read(g.Path())
			must(t, err)
			must(t, was.copyTo(g.Path()+".orig"))
		},
	}
	for n := range len(steps) + 1 {
		for _, again := range []bool{false, true} {
			g := newGuard(t, PreCommit)
			write(t, g.Path(), text, 0o755)
			before := tree(t, g.Dir)
			for _, step := range steps[:n] {
				step(t, g)
			}
			if again {
				install(t, g)
			}
			uninstall(t, g)
			if after := tree(t, g.Dir); after != before && n > 0 {
				// The first step may leave empty folders and nothing else.
				_ = os.Remove(g.programs())
				_ = os.Remove(filepath.Dir(g.programs()))
				if after = tree(t, g.Dir); after != before {
					t.Errorf("after %d steps, again %v: before\n%s\nafter\n%s", n, again, before, after)
				}
			}
		}
	}
}

func TestConcurrentInstallationsGiveOneGuard(t *testing.T) {
	t.Parallel()
	for range 20 {
		g := newGuard(t, PreCommit)
		write(t, g.Path(), "#!/bin/sh\nexit 0\n", 0o755)
		before := tree(t, g.Dir)
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() { errs[i] = g.Install() })
		}
		all.Wait()
		must(t, errors.Join(errs...))
		if l, err := g.Inspect(); err != nil || l.State != Guarded || l.Kept != g.Path()+".orig" {
			t.Fatalf("%+v, %v", l, err)
		}
		uninstall(t, g)
		if after := tree(t, g.Dir); after != before {
			t.Fatalf("before\n%s\nafter\n%s", before, after)
		}
	}
}

func TestAFolderThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	g := newGuard(t, PreCommit)
	write(t, g.Dir, "no folder", 0o644)
	for what, err := range map[string]error{"install": g.Install(), "look": second(g.Inspect()), "uninstall": third(g.Uninstall())} {
		if !fault.HasCode(err, CodeFolder) || !strings.Contains(err.Error(), g.Dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
	g = newGuard(t, PreCommit)
	must(t, os.MkdirAll(g.Path(), 0o755))
	if err := g.Install(); !fault.HasCode(err, CodeFolder) || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder at the hook: %v", err)
	}
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	g = newGuard(t, PreCommit)
	write(t, g.Path(), "#!/bin/sh\n", 0o755)
	before := tree(t, g.Dir)
	must(t, os.Chmod(g.Dir, 0o555))
	err := g.Install()
	must(t, os.Chmod(g.Dir, 0o755))
	if !fault.HasCode(err, CodeFolder) || !strings.Contains(err.Error(), "permission denied") || tree(t, g.Dir) != before {
		t.Errorf("a folder that can only be read: %v\n%s", err, tree(t, g.Dir))
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// The scripts work with any characters in the path of the program and of the hooks.
func TestPathsMayHoldAnything(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	for _, name := range []string{"plain", "with a blank", "it's", `a "quote"`, "back\\slash", "$HOME `id` $(id)", "new\nline", "new line at the end\n", "ñandú 日本", "-rf", "*?[x]", "broken\xff"} {
		for _, hook := range Hooks() {
			dir := filepath.Join(t.TempDir(), name)
			g := Guard{Dir: filepath.Join(dir, "hooks"), Hook: hook, Program: filepath.Join(dir, "cairn"), Project: name, Staged: staged()}
			write(t, g.Program, "#!/bin/sh\nprintf '<%s>' \"$@\"\ncat >/dev/null\nexit 1\n", 0o755)
			install(t, g)
			cmd := exec.Command(g.Path(), "origin", "url")
			cmd.Stdin = strings.NewReader("a line\n")
			out, err := cmd.Output()
			want := "<guard><check><--stdin-nul><--project><" + name + ">"
			if hook == PrePush {
				want = "<guard><check><--pre-push><--project><" + name + "><--><origin>"
			}
			if cmd.ProcessState.ExitCode() != 1 || string(out) != want {
				t.Errorf("%s of %q: %q, %v, want %q", hook, name, out, err, want)
			}
		}
	}
}

// A guard that fails or is missing is not a veto; only exit code 1 is.
func TestOnlyExitCode1OfTheGuardStopsGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	for code, want := range map[int]int{0: 0, 1: 1, 2: 0, 126: 0, 255: 0} {
		g := newGuard(t, PrePush)
		g.Program = filepath.Join(g.Dir, "cairn")
		write(t, g.Program, fmt.Sprintf("#!/bin/sh\nexit %d\n", code), 0o755)
		install(t, g)
		cmd := exec.Command(g.Path())
		told, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want || (code > 1) != bytes.Contains(told, []byte("nothing was checked")) {
			t.Errorf("of %d the hook makes %d: %s", code, got, told)
		}
	}
}

// Each program and the original hook get the arguments and all of git's input. The first
// that fails determines the exit code.
func TestAChainForwardsArgumentsAndInput(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	const echo = "#!/bin/sh\nprintf '%s(' \"${0##*/}\"; printf '<%s>' \"$@\"; cat; printf ')'\nexit "
	input := strings.Repeat("refs/heads/main 1 refs/heads/main 2\n", 3000) + "\n\n"
	for code := range map[int]bool{0: true, 7: true} {
		g := newGuard(t, PrePush)
		g.Program = filepath.Join(g.Dir, "cairn")
		write(t, g.Program, "#!/bin/sh\nexit 0\n", 0o755) // does not read its input
		write(t, g.Path(), echo+fmt.Sprint(code)+"\n", 0o755)
		install(t, g)
		write(t, filepath.Join(g.programs(), "10-first"), echo+"0\n", 0o755)
		write(t, filepath.Join(g.programs(), "90-asleep"), echo+"1\n", 0o644)
		cmd := exec.Command(g.Path(), "origin", "a b")
		cmd.Stdin = strings.NewReader(input)
		out, _ := cmd.Output()
		want := "10-first(<origin><a b>" + input + ")pre-push.orig(<origin><a b>" + input + ")"
		if string(out) != want || cmd.ProcessState.ExitCode() != code {
			t.Errorf("exit %d, %d bytes %.200q, want %d bytes", cmd.ProcessState.ExitCode(), len(out), out, len(want))
		}
	}
	g := newGuard(t, PreCommit)
	g.Program = "/nowhere/cairn"
	write(t, g.Path(), echo+"0\n", 0o755)
	install(t, g)
	cmd := exec.Command("sh", PreCommit, "x y") // called without a folder
	cmd.Dir = g.Dir
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader("typed\n")
	if out, err := cmd.Output(); err != nil || string(out) != "pre-commit.orig(<x y>typed\n)" {
		t.Errorf("%q, %v", out, err)
	}
}

func FuzzTheOriginalHookIsRestored(f *testing.F) {
	f.Add([]byte("#!/bin/sh\nexit 0\n"), uint16(0o755), "", false)
	f.Add([]byte("#!/bin/sh\n. \"$(dirname \"$0\")/h\"\n"), uint16(0o644), "mine", true)
	f.Add([]byte("x.orig\r\n\x00"), uint16(0o444), "other", false)
	f.Add([]byte(chainText(PreCommit, "pre-commit.orig", false)+"\r\n"), uint16(0o755), "", true)
	f.Add([]byte(strings.ReplaceAll(chainText(PreCommit, "pre-commit.orig", true), "\n", "\r\n")), uint16(0o755), "kept", true)
	f.Fuzz(func(t *testing.T, text []byte, mode uint16, orig string, push bool) {
		g := newGuard(t, PreCommit)
		if push {
			g.Hook = PrePush
		}
		write(t, g.Path(), string(text), fs.FileMode(mode)&0o777|0o400)
		if orig != "" {
			write(t, g.Path()+".orig", orig, 0o755)
		}
		if _, intact, ours := bodyOf(text, chainMark); ours {
			before := tree(t, g.Dir)
			install(t, g)
			_, kept := uninstall(t, g)
			if !intact && (len(kept) != 1 || tree(t, g.Dir) != before) {
				t.Errorf("a chain that was changed: kept %q\n%s\n%s", kept, before, tree(t, g.Dir))
			}
			return
		}
		cycle(t, g)
	})
}
