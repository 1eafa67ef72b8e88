package harness

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// BenchmarkTyped removes the harness's part from a prompt of 4 KB.
func BenchmarkTyped(b *testing.B) {
	prompt := string(bytes.Repeat([]byte("glaze a < b [and] "), 200)) + "<system-reminder>" + strings.Repeat("x", 400) + "</system-reminder>"
	b.SetBytes(int64(len(prompt)))
	for b.Loop() {
		if Typed(prompt) == "" {
			b.Fatal("nothing left")
		}
	}
}

func TestTypedKeepsWhatThePersonWrote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ prompt, want string }{
		"plain":                     {" throw a bowl \n", " throw a bowl \n"},
		"blank":                     {" \n", " \n"},
		"html":                      {"why <div>?</div> a < b [x]", "why <div>?</div> a < b [x]"},
		"reminder alone":            {"<system-reminder>\nnote\n</system-reminder>\n", ""},
		"reminder at the end":       {"throw a bowl\n\n<system-reminder>x</system-reminder>", "throw a bowl"},
		"reminder in the middle":    {"throw <system-reminder>x</system-reminder> a bowl", "throw\na bowl"},
		"two reminders":             {"<system-reminder>x</system-reminder>a<system-reminder>y</system-reminder>", "a"},
		"task notification":         {"<task-notification>\n<task-id>b1</task-id>\n</task-notification>", ""},
		"notification with preface": {"[SYSTEM NOTIFICATION - NOT USER INPUT]\nNobody wrote this.\n<task-notification>x</task-notification>", ""},
		"opened file":               {"<ide_opened_file>pot.go</ide_opened_file>\nglaze it", "glaze it"},
		"selection with attributes": {"<ide_selection lines=\"3\">x</ide_selection>glaze it", "glaze it"},
		"local output":              {"<local-command-stdout>\x1b[2mok</local-command-stdout>", ""},
		"shell of the user":         {"<bash-input>ls</bash-input>", ""},
		"shell output":              {"<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", ""},
		"command without arguments": {"<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n  <command-args></command-args>", ""},
		"command with arguments":    {"<command-message>fire</command-message>\n<command-name>/fire</command-name>\n<command-args>cone 6,\nslowly</command-args>", "/fire cone 6,\nslowly"},
		"command without a slash":   {"<command-name>fire</command-name><command-args>6</command-args>", "/fire 6"},
		"command and more":          {"<command-name>/fire</command-name><command-args>6</command-args> please", "/fire 6\nplease"},
		"interruption":              {"[Request interrupted by user]", ""},
		"interruption at a tool":    {"[Request interrupted by user for tool use] use slip", "use slip"},
		"unclosed interruption":     {"[Request interrupted by", ""},
		"word like it later":        {"it said [Request interrupted", "it said [Request interrupted"},
		"unclosed at the start":     {"<system-reminder> torn off", ""},
		"unclosed later":            {"what does <system-reminder> mean?", "what does <system-reminder> mean?"},
		"closing tag alone":         {"a </system-reminder> b", "a </system-reminder> b"},
		"closed before it opens":    {"a </bash-x> <bash-x> b", "a </bash-x> <bash-x> b"},
		"torn tag":                  {"<system-reminder", "<system-reminder"},
		"tag of another name":       {"<system-reminders>x</system-reminders>", "<system-reminders>x</system-reminders>"},
		"brackets inside a block":   {"<bash-stdout>[1] <2></bash-stdout>go", "go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Typed(c.prompt); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTypedIsLinear(t *testing.T) {
	t.Parallel()
	const size = 2 << 20
	many := func(part string) string { return strings.Repeat(part, size/len(part)) }
	var names strings.Builder
	for i := 0; names.Len() < size; i++ {
		names.WriteString("<bash-" + strings.Repeat("x", i%40) + ">")
	}
	for name, prompt := range map[string]string{
		"open brackets":        many("<"),
		"white space, then":    strings.Repeat(" ", size/2) + strings.Repeat("<", size/2),
		"open blocks":          "a" + many("<bash-a>"),
		"open blocks by name":  "a" + names.String(),
		"interruptions":        "a" + many("[Request interrupted "),
		"closed blocks":        many("<ide_a></ide_a>"),
		"one name":             "<bash-" + many("a"),
		"closing tags":         many("</bash-a>"),
		"blocks around a text": many("<bash-a>x</bash-a>y"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			Typed(prompt)
			if took := time.Since(start); took > 20*time.Second { // quadratic time would take hours
				t.Errorf("took %v", took)
			}
		})
	}
}
