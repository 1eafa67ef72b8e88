package shell

import (
	"slices"
	"strings"
)

// Kind describes what a simple command runs, without the details that differ between runs.
type Kind struct {
	Name    string   // program and subcommand: "go test", "npm build", "pytest"
	setting []string // options that change how it runs, and assignments and launchers before it
	targets []string // files, folders and packages
}

// Kinds returns what a command line runs. It skips cd, assignments, wrappers (sudo, env, timeout
// 60) and launchers (npx, mise exec --, uv run). It leaves out programs that only read or move
// files: their failure says nothing about the next run.
func Kinds(line string) (list []Kind) {
	for _, c := range simpleCommands(line, false) {
		if c.nested || len(c.words) == 0 {
			continue
		}
		if k := kindOf(c.words); k.Name != "" {
			list = append(list, k)
		}
	}
	return list
}

func kindOf(words []word) (k Kind) {
	name, args := program(words)
	if len(args) == len(words) {
		return k
	}
	lead := words[:len(words)-len(args)-1]
	for isLauncher(name) || isTaskLauncher(name, args) {
		rest := dropLauncherWords(args)
		if name == "mise" {
			rest = dropToolVersions(rest)
		}
		if len(rest) == 0 || isInterpreter(name) && (strings.HasSuffix(rest[0].text, ".py") || args[0].text == "-c") {
			break
		}
		if name != "timeout" && name != "nice" {
			k.setting = append(k.setting, name)
		}
		name, args = program(rest)
	}
	if name == "" || looksAround(name) {
		return Kind{}
	}
	for _, w := range lead {
		if isAssignment(w) || w.text == "sudo" {
			k.setting = append(k.setting, w.text)
		}
	}
	if name == "git" {
		sub, rest := gitSubcommand(args)
		if sub == "" || gitLooks(sub) {
			return Kind{}
		}
		args = rest
		k.Name = "git " + sub
	} else {
		k.Name, args = subcommand(name, args)
		if isInterpreter(name) && k.Name == name { // the code is in the line itself
			return Kind{}
		}
	}
	k.read(args)
	return k
}

// subcommand returns the name of a command, with the first words of its arguments that define its
// purpose, and the remaining arguments.
func subcommand(name string, args []word) (string, []word) {
	words := 1
	switch name {
	case "gh", "docker", "aws", "gcloud", "az", "terraform":
		words = 2
	case "ruff", "biome", "cmake": // these programs have several purposes
	default:
		if toolKind(name, args) != "" {
			return name, args
		}
	}
	kind := name
	for ; words > 0 && len(args) > 0; words-- {
		text := args[0].text
		if isTaskRunner(name) && name != "go" && name != "cargo" && name != "dotnet" && (text == "run" || text == "exec") {
			args, words = args[1:], words+1
			continue
		}
		if !isBareWord(text) && (!isInterpreter(name) || strings.HasPrefix(text, "-")) {
			break
		}
		kind, args = kind+" "+text, args[1:]
	}
	return kind, args
}

// read divides arguments into settings and targets.
func (k *Kind) read(args []word) {
	for _, a := range args {
		switch {
		case !strings.HasPrefix(a.text, "-"):
			k.targets = append(k.targets, a.text)
		case !narrows(a.text):
			option, _, _ := strings.Cut(a.text, "=")
			k.setting = append(k.setting, option)
		}
	}
}

// isBareWord reports whether an argument looks like a subcommand or a task.
func isBareWord(s string) bool {
	if s == "" || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (c < '0' || c > '9') && c != '-' && c != '_' && c != ':' {
			return false
		}
	}
	return isLetter(s[0])
}

// isTaskLauncher matches `mise exec`, `npm exec`, `pnpm exec`, `pnpm dlx` and `yarn exec`.
func isTaskLauncher(name string, args []word) bool {
	if len(args) == 0 {
		return false
	}
	switch name {
	case "mise":
		return args[0].text == "exec" || args[0].text == "x"
	case "npm", "pnpm", "yarn":
		return args[0].text == "exec" || args[0].text == "dlx"
	}
	return false
}

// dropToolVersions removes the words before the command of `mise exec`, such as `node@20 --`.
func dropToolVersions(args []word) []word {
	if i := slices.IndexFunc(args, func(w word) bool { return w.text == "--" }); i >= 0 {
		return args[i+1:]
	}
	for len(args) > 0 && (strings.Contains(args[0].text, "@") || args[0].text == "x") {
		args = args[1:]
	}
	return args
}

func isInterpreter(name string) bool {
	switch name {
	case "python", "python3", "node", "ruby", "perl", "php", "bash", "sh", "zsh", "deno":
		return true
	}
	return false
}

// looksAround reports whether a program only reads, prints or moves files and checks nothing.
func looksAround(name string) bool {
	switch name {
	case "cd", "ls", "cat", "head", "tail", "less", "grep", "rg", "find", "fd", "which", "type", "command", "echo", "printf", "test", "[", "true", "false",
		"pwd", "wc", "diff", "stat", "file", "sed", "awk", "sort", "uniq", "tree", "jq", "sleep", "kill", "pkill", "ps", "export", "source", ".", "set",
		"mkdir", "rm", "cp", "mv", "touch", "chmod", "ln", "tee", "xargs", "date":
		return true
	}
	return false
}

// gitLooks reports whether a subcommand of git is usually read-only.
func gitLooks(sub string) bool {
	switch sub {
	case "status", "log", "diff", "show", "branch", "grep", "blame", "ls-files", "ls-tree", "rev-parse", "cat-file", "remote", "config", "stash":
		return true
	}
	return false
}

// Concerns reports whether a failed run of the same kind is relevant to this run. It is if their
// targets overlap, or if one of the two runs is for the whole project.
func (k *Kind) Concerns(failed *Kind) bool {
	if k.isForAll() || failed.isForAll() {
		return true
	}
	for _, t := range k.targets {
		dir := strings.TrimSuffix(t, "...")
		for _, f := range failed.targets {
			if strings.HasPrefix(f, dir) || strings.HasPrefix(t, strings.TrimSuffix(f, "...")) {
				return true
			}
		}
	}
	return false
}

// isForAll reports whether a run is for the whole project.
func (k *Kind) isForAll() bool {
	return len(k.targets) == 0 || slices.Contains(k.targets, ".") || slices.Contains(k.targets, "./...")
}

// Added returns the settings of a successful run that the failed run lacks. They explain the
// success.
func (k *Kind) Added(failed *Kind) (list []string) {
	for _, s := range k.setting {
		if !slices.Contains(failed.setting, s) {
			list = append(list, s)
		}
	}
	return list
}

// Has reports whether a run has all the given settings.
func (k *Kind) Has(settings []string) bool {
	return !slices.ContainsFunc(settings, func(s string) bool { return !slices.Contains(k.setting, s) })
}

// Program returns the name of the program. Every command line of this kind contains it.
func (k *Kind) Program() string {
	name, _, _ := strings.Cut(k.Name, " ")
	return name
}

// KindNamed returns the first element of list with the given name, or nil.
func KindNamed(list []Kind, name string) *Kind {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
