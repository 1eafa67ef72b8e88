package observation

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/store"
)

const (
	maxChecks   = 3
	checkSample = 200 // newest commands of a project that are searched for checks

	// All in one text, as in selectTouched. Older rows come first, so that the last
	// success of a command wins.
	selectChecks = `SELECT ifnull(group_concat(id || ' ' || content, char(0)), '')
FROM (SELECT * FROM (SELECT id, content FROM observation_rows
    WHERE project_key = ? AND obs_type = 'command' AND timestamp >= ? AND octet_length(content) <= 400
    ORDER BY timestamp DESC, id DESC LIMIT +?)
  WHERE content LIKE '%test%' OR content LIKE '%lint%' OR content LIKE '%build%' OR content LIKE '%fmt%' OR content LIKE '%format%'
     OR content LIKE '%check%' OR content LIKE '%vet%' OR content LIKE '%spec%' OR content LIKE '%tsc%' OR content LIKE '%mypy%'
     OR content LIKE '%ruff%' OR content LIKE '%clippy%' OR content LIKE '%black%' OR content LIKE '%prettier%' OR content LIKE '%pyright%'
  ORDER BY id)`
)

// check is a command that verifies the project, with how often it passed.
type check struct {
	kind   string // test, lint, build or fmt
	text   string
	id     int64 // the row of its last success
	order  int   // of its last success among the rows
	passed int
}

// readChecks finds, for each kind of check, the command that passed most often, and
// renders up to three on a line, by last success.
func (b *contextBuilder) readChecks(ctx context.Context, tx *store.Tx) error {
	if b.span.resumed || b.project.Key == 0 {
		return nil
	}
	var list string
	err := tx.Each(ctx, func(r *sql.Rows) error { return r.Scan(&list) },
		selectChecks, b.project.Key, b.keep.cutoff(typeCommand, b.now), checkSample)
	if err != nil || list == "" {
		return err
	}
	byText := map[string]*check{}
	parsed := map[string][]check{} // by command line: many run again and again
	n := 0
	for row := range strings.SplitSeq(list, "\x00") {
		digits, line, _ := strings.Cut(row, " ")
		id, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return err
		}
		found, ok := parsed[line]
		if !ok {
			found = checksIn(line)
			parsed[line] = found
		}
		for _, c := range found {
			known := byText[c.text]
			if known == nil {
				known = &check{kind: c.kind, text: c.text}
				byText[c.text] = known
			}
			n++
			known.id, known.order, known.passed = id, n, known.passed+1
		}
	}
	best := map[string]*check{}
	for _, c := range byText {
		if k := best[c.kind]; k == nil || c.passed > k.passed || c.passed == k.passed && c.order > k.order {
			best[c.kind] = c
		}
	}
	found := slices.Collect(maps.Values(best))
	slices.SortFunc(found, func(a, b *check) int { return cmp.Compare(b.order, a.order) })
	found = found[:min(len(found), maxChecks)]
	if len(found) == 0 {
		return nil
	}
	row := contextRow{id: found[0].id}
	texts := make([]string, len(found))
	for i, c := range found {
		texts[i] = cell(c.text, maxCell)
		if c.id != row.id && !slices.Contains(row.also, c.id) {
			row.also = append(row.also, c.id)
		}
	}
	row.line = "- " + strings.Join(texts, " · ")
	b.checks = []contextRow{row}
	return nil
}

// checksIn lists the checks of a command line that passed. A part of which the exit
// code decided nothing, before "||" or ";", does not count. A part before a pipe does:
// the filter behind it only shortens what the check prints.
func checksIn(line string) (found []check) {
	for _, c := range shellCommands(line, false) {
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
		found = append(found, check{kind: kind, text: text})
	}
	return found
}

// withoutPlumbing is a command line without the redirections and filters at its end
// that only shorten what it prints.
func withoutPlumbing(line string) string {
	all := shellCommands(line, false)
	end := 0
	for _, c := range all {
		if c.nested || len(c.words) == 0 {
			continue
		}
		if name, _ := program(c.words); end > 0 && isOutputFilter(name) {
			break
		}
		end = max(end, c.words[len(c.words)-1].end)
	}
	if end == 0 {
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

// leavesWork reports whether a user would call a failed command unfinished: a check,
// or a script or task of the project. Looking around and fetching from the network
// leave nothing to do.
func leavesWork(line string) bool {
	for _, c := range shellCommands(line, false) {
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

// checkKind is what a simple command verifies: test, lint, build or fmt; "" if it
// verifies nothing.
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

// isLauncher reports whether a program runs the program that its arguments name.
func isLauncher(name string) bool {
	switch name {
	case "npx", "bunx", "uv", "uvx", "poetry", "pipenv", "pdm", "hatch", "bundle", "python", "python3", "xvfb-run", "timeout", "nice":
		return true
	}
	return false
}

// dropLauncherWords drops a launcher's own subcommand, options and numbers.
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

// toolKind is the kind of a program that does one thing.
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

// taskKind is the kind of a task or subcommand, by the words of its name.
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
