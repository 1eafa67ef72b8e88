package shell

import (
	"strings"
	"testing"
)

func TestAPassedCheckResolvesEqualAndNarrowerOnes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		passed, failed string
		want           bool
	}{
		{"go test ./...", "go test -run TestOne -v ./refund", true},
		{"go test ./cart", "go test ./refund", false},
		{"go test ./...", "go test -tags=integration ./refund", false},
		{"go test -tags=integration ./...", "go test -tags=integration ./refund", true},
		{"go vet ./...", "go test ./...", false},
		{"make test", "make lint", false},
		{"make lint && make test", "make test && make lint", true},
	} {
		if got := Resolves(PassedChecks(c.passed), c.failed); got != c.want {
			t.Errorf("%s resolves %s: %v", c.passed, c.failed, got)
		}
	}
}

func TestChecksAreFoundInCommandLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"mise run fmt && mise run lint 2>&1 | tail -20": "fmt: mise run fmt, lint: mise run lint",
		"cd /x && CGO_ENABLED=0 go test ./...":          "test: CGO_ENABLED=0 go test ./...",
		"npx -y eslint src":                             "lint: npx -y eslint src",
		"python3 -m pytest -q tests":                    "test: python3 -m pytest -q tests",
		"uv run ruff format .":                          "fmt: uv run ruff format .",
		"npm run test:ci || true":                       "",
		"./gradlew clean build":                         "build: ./gradlew clean build",
		"git commit -m 'fix the test build'":            "",
		"npm install eslint":                            "",
		"ls test; cat build":                            "",
		"cargo clippy --all && cargo nextest run":       "lint: cargo clippy --all, test: cargo nextest run",
	} {
		var got []string
		for _, c := range Checks(line) {
			got = append(got, c.Kind+": "+c.Text)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestOnlyRepositoriesInAnotherFolderAreNew(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"cd /tmp/x && git init && git commit -m a": true, "git init x && cd x && git commit -m a": true, "git -C x init && git commit -m a": false,
		"git init && git add -A && git commit -m a": false, "git commit -m 'after git init'": false, "git init -q && cd web && git commit -m a": false,
	} {
		if got := InNewRepository(line); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestKindsOfCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"cd x && sudo env A=b timeout 60 go test ./internal/foo -run X": "go test",
		"go test ./... | tail -5":          "go test",
		"A=1 npm run test:unit -- x":       "npm test:unit",
		"npx tsc --noEmit":                 "tsc",
		"mise exec node@20 -- npm test":    "npm test",
		"pnpm exec eslint src":             "eslint",
		"python -m pytest tests/x.py":      "pytest",
		"python3 run.py --fast":            "python3 run.py",
		"python -c 'import x'":             "",
		"bash -c 'go test'":                "",
		"uv run pytest -x":                 "pytest",
		"git -C dir commit -m 'a message'": "git commit",
		"git status":                       "",
		"gh pr create --fill":              "gh pr create",
		"./gradlew test":                   "gradlew test",
		"grep -r go test":                  "",
		"go build ./... && go vet ./...":   "go build, go vet",
		"cargo run --bin x":                "cargo run",
		"":                                 "",
		"timeout 60":                       "timeout",
	} {
		var names []string
		for _, k := range Kinds(line) {
			names = append(names, k.Name)
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
