package prompts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/memory"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/prompts"
)

func TestPromptsSayWhatTheContractAsksAndCanBeOverridden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range prompts.Kinds() {
		p, warnings, err := prompts.Of(dir, kind)
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		memorytest.Want(t, "version and source", p.Version+p.Source, "v1default")
		text := strings.Join(strings.Fields(p.Prompt), " ")
		for _, part := range []string{
			"get_context", "list_entries` with limit 10", "add_entry", "word for word", "small talk", "three times at most", "idempotency_key", "512 characters",
			"80 tokens", "past tense", "ISO dates", "pronoun", "list_inflight_entries", "six messages", "await_consistency", "update_context",
			"Description, Facts, Preferences, Decisions, Topics, Entities, Notes and Timeline", "4,800", "top_k` 5", "at most eight words",
			"a memory of its own", "names the entryId of the old one", "Without telling",
		} {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(part)) {
				t.Errorf("the prompt for %s does not say %q", kind, part)
			}
		}
		for _, text := range []string{p.Rules, p.Templates.Capture, p.Templates.Context, p.Templates.Summary} {
			if utf8.RuneCountInString(text) > prompts.MaxPrompt || len(strings.Fields(text)) > prompts.MaxPromptWords || text == "" {
				t.Errorf("a text of ours breaks the limit of overrides: %q", text)
			}
		}
	}
	_, _, err := prompts.Of(dir, "poem")
	memorytest.WantError(t, "another kind", err, 404, memory.CodeNotFound, `"allowed":["chat","code"]`)
	write("code/summary_prompt.md", "Be brief.\n")
	write("code/context_prompt.md", strings.Repeat("word ", 201))
	write("chat/context_prompt.md", strings.Repeat("x", 2049))
	p, warnings, err := prompts.Of(dir, "code")
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "context_prompt.md") {
		t.Errorf("%v %q", err, warnings)
	}
	memorytest.Want(t, "overridden", p.Templates.Summary+p.Source, "Be brief.override")
	p, warnings, err = prompts.Of(dir, "chat")
	memorytest.Want(t, "too long", fmt.Sprint(p.Source, len(warnings), err), "default1 <nil>")
}
