package shell

import (
	"slices"
	"strings"
)

// MayCheck reports whether a command line contains a word that is common in checks. Callers skip
// Checks for all other lines, because it is slower.
func MayCheck(line string) bool {
	for _, word := range [...]string{
		"test", "lint", "build", "check", "fmt", "format", "vet", "spec", "tsc", "mypy", "ruff", "clippy", "black", "prettier", "pyright",
	} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// Checks returns the checks of a successful command line. A part before "||", ";" or "&" does not
// count, because it does not decide the exit code. A part before a pipe counts, because the
// filter only shortens the output of the check.
func Checks(line string) (found []Check) {
	for _, c := range simpleCommands(line, false) {
		if c.nested || len(c.words) == 0 {
			continue
		}
		kind := checkKind(c.words)
		end := c.words[len(c.words)-1].end
		between := strings.TrimSpace(line[end:min(max(c.after, end), len(line))])
		if kind == "" || strings.HasSuffix(between, "||") || strings.HasSuffix(between, ";") || strings.HasSuffix(between, "&") && !c.and {
			continue
		}
		text := strings.Join(strings.Fields(line[c.start:end]), " ")
		if strings.ContainsAny(text, "<>`$") {
			continue
		}
		found = append(found, Check{Kind: kind, Text: text})
	}
	return found
}

// WithoutPlumbing returns a command line without the redirections and filters at its end that
// only shorten its output. It keeps a redirection to a file.
func WithoutPlumbing(line string) string {
	end := 0
	for _, c := range simpleCommands(line, false) {
		if c.nested || len(c.words) == 0 {
			continue
		}
		last := c.words[len(c.words)-1].end
		name, _ := program(c.words)
		if end == 0 || !isOutputFilter(name) || strings.HasPrefix(strings.TrimSpace(line[last:]), ">") {
			end = max(end, last)
		}
	}
	if rest := strings.TrimSpace(line[end:]); end == 0 || strings.HasPrefix(rest, ">") || strings.HasPrefix(rest, "<") {
		return line
	}
	return line[:end]
}

func isOutputFilter(name string) bool {
	switch name {
	case "tail", "head", "grep", "rg", "tee", "cat", "less", "wc", "sort", "uniq", "echo", "true":
		return true
	}
	return false
}

// LeavesWork reports whether a failed command leaves work to do: it is a check, or a script or
// task of the project. Commands that only inspect files or fetch from the network leave none.
func LeavesWork(line string) bool {
	for _, c := range simpleCommands(line, false) {
		if c.nested || len(c.words) == 0 {
			continue
		}
		if checkKind(c.words) != "" {
			return true
		}
		name, args := program(c.words)
		switch name {
		case "make", "just", "task", "mise", "rake", "nox", "gradle", "gradlew", "mvn", "mvnw", "bazel", "ninja", "cmake", "terraform":
			return len(args) > 0 || name == "make"
		case "go", "cargo", "npm", "pnpm", "yarn", "bun", "deno", "dotnet":
			return len(args) > 0 && (args[0].text == "run" || args[0].text == "generate" || args[0].text == "publish")
		}
	}
	return false
}

// InNewRepository reports whether a command line creates a repository in another folder and works
// there.
func InNewRepository(line string) bool {
	if !strings.Contains(line, "git init") {
		return false
	}
	moved := false
	for _, c := range simpleCommands(line, false) {
		name, args := program(c.words)
		if name == "git" && len(args) > 0 && args[0].text == "init" {
			return moved || slices.ContainsFunc(args[1:], func(a word) bool { return !strings.HasPrefix(a.text, "-") })
		}
		moved = moved || name == "cd"
	}
	return false
}

// PassedCheck is a passed check of a later run, in the form that Resolves compares.
type PassedCheck struct {
	program string
	args    []string // without options
	options []string // options that change what is checked, such as -tags and -race
}

// PassedChecks returns the checks of a successful command line, for Resolves.
func PassedChecks(line string) (list []PassedCheck) {
	for _, c := range Checks(line) {
		for _, simple := range simpleCommands(c.Text, false) {
			list = append(list, comparableCheck(simple.words))
		}
	}
	return list
}

func comparableCheck(words []word) (c PassedCheck) {
	name, args := program(words)
	c.program = name
	for _, a := range args {
		option, value, _ := strings.Cut(a.text, "=")
		switch {
		case !strings.HasPrefix(a.text, "-"):
			c.args = append(c.args, a.text)
		case narrows(a.text) || name == "go" && option == "-c": // -c only compiles
		default:
			c.options = append(c.options, option)
			if value != "" { // "-tags=slow" has its value in args, like "-tags slow"
				c.args = append(c.args, value)
			}
		}
	}
	return c
}

// narrows reports whether an option only selects tests or changes the output.
func narrows(option string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(option, "-"), "=")
	switch name {
	case "run", "v", "vv", "q", "count", "timeout", "k", "x", "filter", "grep", "json", "verbose":
		return true
	}
	return false
}

// Resolves reports whether checks that passed later cover all checks of a failed line. A check
// covers another one with the same program and the options that change what is checked. It must
// have the same arguments, fewer of them, or "./...". Resolves returns false if the failed line
// contains no check.
func Resolves(passed []PassedCheck, failed string) bool {
	found := false
	for _, c := range simpleCommands(failed, false) {
		if c.nested || checkKind(c.words) == "" {
			continue
		}
		found = true
		f := comparableCheck(c.words)
		if !slices.ContainsFunc(passed, func(p PassedCheck) bool { return p.covers(f) }) {
			return false
		}
	}
	return found
}

func (p PassedCheck) covers(f PassedCheck) bool {
	if p.program != f.program || len(p.args) == 0 != (len(f.args) == 0) {
		return false
	}
	for _, o := range f.options {
		if !slices.Contains(p.options, o) {
			return false
		}
	}
	for i, a := range p.args {
		// The first argument is the subcommand, which "./..." is not.
		if a != "./..." && !slices.Contains(f.args, a) || i == 0 && f.args[0] != a && !strings.Contains(a, "/") {
			return false
		}
	}
	return true
}

// checkKind returns the kind of check that a simple command runs: test, lint, build or fmt. It
// returns "" for other commands.
func checkKind(words []word) string {
	name, args := program(words)
	for isLauncher(name) && len(args) > 0 {
		args = dropLauncherWords(args)
		if len(args) == 0 {
			return ""
		}
		name, args = programName(args[0].text), args[1:]
	}
	if kind := toolKind(name, args); kind != "" || !isTaskRunner(name) {
		return kind
	}
	for _, a := range args {
		switch a.text {
		case "run", "clean", "exec", "x":
			continue
		}
		if !strings.HasPrefix(a.text, "-") {
			return taskKind(a.text)
		}
	}
	return ""
}

// isLauncher reports whether a program runs another program, which its arguments name.
func isLauncher(name string) bool {
	switch name {
	case "npx", "bunx", "uv", "uvx", "poetry", "pipenv", "pdm", "hatch", "bundle", "python", "python3", "xvfb-run", "timeout", "nice":
		return true
	}
	return false
}

// dropLauncherWords removes a launcher's own subcommand, options and numbers.
func dropLauncherWords(args []word) []word {
	for len(args) > 0 {
		t := args[0].text
		if t != "run" && t != "exec" && !strings.HasPrefix(t, "-") && strings.Trim(t, "0123456789smh.") != "" {
			break
		}
		args = args[1:]
	}
	return args
}

func isTaskRunner(name string) bool {
	switch name {
	case "make", "just", "task", "mise", "npm", "pnpm", "yarn", "bun", "deno", "gradle", "gradlew", "mvn", "mvnw", "rake", "nox", "tox",
		"sbt", "mix", "dotnet", "bazel", "composer", "cargo", "go", "swift", "flutter", "dart", "zig", "invoke", "nx", "turbo", "lerna":
		return true
	}
	return false
}

// toolKind returns the kind of check of a program with a single purpose, else "".
func toolKind(name string, args []word) string {
	switch name {
	case "pytest", "rspec", "jest", "vitest", "mocha", "phpunit", "ctest", "unittest", "playwright", "gotestsum", "tox", "nox":
		return "test"
	case "golangci-lint", "eslint", "flake8", "pylint", "mypy", "pyright", "tsc", "rubocop", "shellcheck", "hadolint", "stylelint", "staticcheck", "phpstan":
		return "lint"
	case "prettier", "black", "isort", "clang-format", "rustfmt", "gofmt", "goimports", "gofumpt":
		return "fmt"
	case "ninja":
		return "build"
	case "ruff", "biome":
		if len(args) > 0 && args[0].text == "format" {
			return "fmt"
		}
		return "lint"
	case "cmake":
		if len(args) > 0 && args[0].text == "--build" {
			return "build"
		}
	}
	return ""
}

// taskKind returns the kind of check of a task or subcommand, derived from the words of its name,
// else "".
func taskKind(name string) string {
	for part := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune(":-_./@", r) }) {
		switch part {
		case "test", "tests", "spec", "e2e", "verify", "nextest":
			return "test"
		case "lint", "vet", "check", "clippy", "typecheck", "tsc", "mypy", "staticcheck":
			return "lint"
		case "build", "compile", "assemble", "package":
			return "build"
		case "fmt", "format":
			return "fmt"
		}
	}
	return ""
}

// Check is a command that verifies a project.
type Check struct {
	Kind string // test, lint, build or fmt
	Text string
}
