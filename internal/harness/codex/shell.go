package codex

import (
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
)

// shellPatch returns the patch that a command line passes to apply_patch, and the directory that
// it changes to first. ok is false if the command line does anything else.
func shellPatch(command string) (patch, dir string, ok bool) {
	begin, end := strings.Index(command, harness.PatchBegin), strings.LastIndex(command, harness.PatchEnd)
	if begin < 0 || end < begin {
		return "", "", false
	}
	head, tail := strings.TrimSpace(command[:begin]), strings.TrimSpace(command[end+len(harness.PatchEnd):])
	if rest, found := strings.CutPrefix(head, "cd "); found {
		if dir, head, found = strings.Cut(rest, "&&"); !found {
			return "", "", false
		}
		dir, head = strings.Trim(strings.TrimSpace(dir), `'"`), strings.TrimSpace(head)
	}
	head, found := strings.CutPrefix(head, harness.PatchTool)
	if !found {
		if head, found = strings.CutPrefix(head, "applypatch"); !found {
			return "", "", false
		}
	}
	head = strings.TrimSpace(head)
	if word, found := strings.CutPrefix(head, "<<"); found {
		head = strings.Trim(strings.TrimSpace(strings.TrimPrefix(word, "-")), `'"\`)
	}
	return command[begin : end+len(harness.PatchEnd)], dir, head == tail
}

// maxWords limits how many words of a command are read.
const maxWords = 4096

// shellLine returns a command as a user would type it. Codex sends a line or a list of words. If
// they only pass a script to a shell, shellLine returns the script.
func shellLine(value lazyjson.Value) string {
	if value.Kind() == '"' {
		line := value.Text()
		if words, ok := splitWords(line); ok {
			if script, ok := scriptOf(words); ok {
				return script
			}
		}
		return line
	}
	var words []string
	size := 0
	for word := range value.Elements() {
		if len(words) == maxWords || size > lazyjson.MaxText {
			break
		}
		words = append(words, word.Text())
		size += len(words[len(words)-1])
	}
	if script, ok := scriptOf(words); ok {
		return script
	}
	line := make([]byte, 0, 64)
	for i, word := range words {
		if i > 0 {
			line = append(line, ' ')
		}
		line = append(line, quoted(word)...)
	}
	var whole lazyjson.Paragraphs
	whole.Add(string(line))
	return whole.Text()
}

// scriptOf returns the script that a command passes to a shell, as in bash -lc SCRIPT or pwsh
// -NoProfile -Command SCRIPT.
func scriptOf(words []string) (string, bool) {
	n := len(words)
	if n < 3 || !isShell(words[0]) {
		return "", false
	}
	for _, word := range words[1 : n-1] {
		if !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "/") {
			return "", false
		}
	}
	flag := strings.ToLower(words[n-2])
	if flag != "-command" && flag != "/c" && (strings.HasPrefix(flag, "--") || !strings.HasSuffix(flag, "c")) {
		return "", false
	}
	return words[n-1], true
}

func isShell(program string) bool {
	name := strings.ToLower(program[strings.LastIndexAny(program, `/\`)+1:])
	switch strings.TrimSuffix(name, ".exe") {
	case "bash", "sh", "zsh", "dash", "ksh", "fish", "pwsh", "powershell", "cmd":
		return true
	}
	return false
}

// quoted quotes a word for a POSIX shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r > 0x7F || strings.ContainsRune("_-./:=@%+,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// splitWords splits a line that calls a shell into words. ok is false for any other line, for a
// line that does more than that, and for an unclosed quote.
func splitWords(line string) (words []string, ok bool) {
	line = strings.TrimSpace(line)
	program, _, _ := strings.Cut(line, " ")
	if !isShell(program) {
		return nil, false
	}
	for line != "" {
		word, rest, ok := firstWord(line)
		if !ok {
			return nil, false
		}
		words, line = append(words, word), strings.TrimLeft(rest, " \t")
	}
	return words, true
}

// firstWord reads one word, quotes included.
func firstWord(line string) (word, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t':
			return b.String(), line[i:], true
		case '\'', '"':
			size := unquote(&b, line[i+1:], c)
			if size < 0 {
				return "", "", false
			}
			i += size
		case '\\':
			if i++; i < len(line) {
				b.WriteByte(line[i])
			}
		case '\n', ';', '&', '|', '<', '>', '(', ')', '`', '$':
			return "", "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", true
}

// unquote writes the quoted text up to the closing quote. It returns the number of bytes read,
// closing quote included, or -1 if the quote is missing.
func unquote(b *strings.Builder, in string, quote byte) int {
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case c == quote:
			return i + 1
		case c == '\\' && quote == '"' && i+1 < len(in) && strings.IndexByte("\\\"$`", in[i+1]) >= 0:
			i++
			b.WriteByte(in[i])
		default:
			b.WriteByte(c)
		}
	}
	return -1
}
