package mail

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Overseer is the name of the human overseer of the agents (mail §4).
const Overseer = "HumanOverseer"

const MaxName = 128 // characters

// WholeName returns a given name as an adjective and a noun of the lists, in PascalCase. ok is
// false if it is not such a pair. All characters except letters and digits are ignored.
func WholeName(given string) (name string, ok bool) {
	if utf8.RuneCountInString(given) > MaxName {
		return "", false
	}
	word := LettersAndDigits(given)
	if strings.ContainsFunc(word, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return "", false // some non-ASCII letters have an ASCII lower case
	}
	word = strings.ToLower(word)
	for i := minWord; i <= len(word)-minWord; i++ {
		if isWord(adjectives[:], word[:i]) && isWord(nouns[:], word[i:]) {
			return pascal(word[:i], word[i:]), true
		}
	}
	return "", false
}

// LettersAndDigits returns only the letters and digits of a text.
func LettersAndDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

func isWord(list []string, word string) bool {
	_, found := slices.BinarySearch(list, word)
	return found
}

func pascal(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

// MistakeIn returns the code of the first known mistake in a name (mail §4). It returns "" for
// a valid name, and for a name without a known mistake.
func MistakeIn(given string) string {
	given = strings.TrimSpace(given)
	if _, ok := WholeName(given); ok {
		return ""
	}
	lower := strings.ToLower(given)
	switch {
	case slices.Contains(programNames[:], lower):
		return CodeProgramName
	case containsAny(lower, modelWords[:]):
		return CodeModelName
	case IsEmail(lower):
		return CodeEmail
	case IsEverybody(lower):
		return CodeBroadcast
	case containsAny(lower, roleWords[:]):
		return CodeDescriptive
	case isUserName(given):
		return CodeUserName
	}
	return ""
}

var programNames = [...]string{
	"claude-code", "claude", "codex-cli", "codex", "cursor", "windsurf", "cline", "aider", "copilot", "github-copilot",
	"gemini-cli", "gemini", "opencode", "vscode", "neovim", "vim", "emacs", "zed", "continue",
}

var modelWords = [...]string{
	"gpt-", "gpt4", "gpt3", "claude-", "opus", "sonnet", "haiku", "gemini-", "llama", "mistral", "codestral", "o1-", "o3-",
}

var roleWords = [...]string{
	"agent", "bot", "assistant", "helper", "manager", "coordinator", "developer", "engineer", "migrator", "refactorer", "fixer",
	"harmonizer", "integrator", "optimizer", "analyzer", "worker",
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// IsEmail reports whether a text has exactly one @, with text on both sides and a dot on the
// right.
func IsEmail(text string) bool {
	user, host, found := strings.Cut(text, "@")
	return found && user != "" && host != "" && !strings.Contains(host, "@") && strings.Contains(host, ".")
}

func IsEverybody(lower string) bool {
	switch strings.TrimPrefix(lower, "@") {
	case "all", "everyone", "broadcast", "*":
		return true
	}
	return false
}

// isUserName reports whether a text is one word of 2 to 16 lower-case letters.
func isUserName(text string) bool {
	return len(text) >= 2 && len(text) <= 16 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") == ""
}

// BadName returns the error for an invalid agent name.
func BadName(field, given string) error {
	code := MistakeIn(given)
	text, hint := "%s is no agent name", "give an adjective and a noun such as GreenLake, or leave the name out and get one"
	switch code {
	case "":
		code = CodeAgentName
	case CodeProgramName:
		text, hint = "%s is the name of a program", "a program goes into program; leave the name out and get one"
	case CodeModelName:
		text, hint = "%s is the name of a model", "a model goes into model; leave the name out and get one"
	case CodeEmail:
		text, hint = "%s is an e-mail address", "agents have names such as GreenLake; list_agents shows them"
	case CodeBroadcast:
		text, hint = "%s means everybody", "send_message with broadcast=true writes to all; an agent has a name of its own"
	case CodeDescriptive:
		text, hint = "%s describes a role", "what you do goes into task_description; leave the name out and get one"
	case CodeUserName:
		text, hint = "%s looks like a user name", "agents have names such as GreenLake; leave the name out and get one"
	}
	return Errorf(code, text, Quoted(given)).With("field", field).With("provided", Clip(given, MaxShown)).Hint(hint)
}

// fullness is the percentage of taken pairs from which generated names have digits.
const fullness = 90

// FreeName returns a random name that no agent of the project has.
func (s *CallTx) FreeName(ctx context.Context) (string, error) {
	taken := map[string]bool{}
	err := eachName(ctx, s.Tx, s.Project.ID, func(name string, _ bool) { taken[strings.ToLower(name)] = true })
	if err != nil {
		return "", err
	}
	if name := freeNameIn(taken, rand.IntN); name != "" {
		return name, nil
	}
	return "", Errorf(CodeAgentName, "every name of the project is taken").Hint("retired agents keep their names; register under one of them")
}

// freeNameIn returns a random name that is not taken, "" if all are. The keys of taken are in
// lower case.
func freeNameIn(taken map[string]bool, draw func(n int) int) string {
	const pairs = len(adjectives) * len(nouns)
	full := isFull(taken, pairs)
	begin := draw(pairs)
	for i := range pairs {
		at := (begin + i*stride) % pairs
		name := pascal(adjectives[at/len(nouns)], nouns[at%len(nouns)])
		if full {
			name = withDigits(name, taken, draw)
		}
		if name != "" && !taken[strings.ToLower(name)] {
			return name
		}
	}
	return ""
}

// isFull reports whether so many pairs are taken that new names get digits.
func isFull(taken map[string]bool, pairs int) bool {
	if 100*len(taken) < fullness*pairs {
		return false
	}
	used := 0
	for name := range taken {
		if pair, ok := WholeName(name); ok && len(pair) == len(name) {
			used++
		}
	}
	return 100*used >= fullness*pairs
}

// withDigits returns a name with two digits appended that is not taken, "" if all are.
func withDigits(name string, taken map[string]bool, draw func(n int) int) string {
	begin := draw(100)
	for i := range 100 {
		n := (begin + i) % 100
		numbered := name + strconv.Itoa(n/10) + strconv.Itoa(n%10)
		if !taken[strings.ToLower(numbered)] {
			return numbered
		}
	}
	return ""
}

// stride is the step of the search for a free name. It shares no factor with the number of
// pairs, so the search visits all of them.
const stride = 7919
