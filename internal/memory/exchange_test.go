package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestAnExportIsImportedOnceAndKeepsItsTimes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	for i := range 7 {
		d.add(fmt.Sprint("e", i))
		d.clock.Move(time.Hour)
	}
	var lines []string
	for cursor, more := "", true; more; {
		page := must(d.Export(ctx, Caller{}, d.memory, cursor, 3))(t)
		for _, e := range page.Entries {
			lines = append(lines, asJSON(t, e))
		}
		cursor, more = page.Next, page.Next != ""
	}
	want(t, "lines", len(lines), 7)
	file := strings.Join(lines, "\n") + "\n\n{\"rawEntry\":\" \"}\nno json\n{\"rawEntry\":\"\\ud800\"}"
	far := d.with(d.newMemory(Caller{}, d.vault, "far"))
	read := 0
	out := must(d.Import(ctx, Caller{}, far.memory, strings.NewReader(file), func(n int) { read = n }))(t)
	want(t, "added", fmt.Sprint(out.Added, out.Known, len(out.Refused), out.Refused[0].Line, read), "7 0 3 9 11")
	want(t, "list", far.texts(), d.texts())
	a := must(d.ListEntries(ctx, Caller{}, ListArgs{MemoryID: d.memory}))(t).Entries[3]
	b := must(d.ListEntries(ctx, Caller{}, ListArgs{MemoryID: far.memory}))(t).Entries[3]
	want(t, "capturedTime", b.CapturedTime, a.CapturedTime)
	want(t, "an id of its own", a.EntryID != b.EntryID, true)
	if _, err := d.DeleteEntry(ctx, Caller{}, far.memory, b.EntryID); err != nil {
		t.Fatal(err)
	}
	out = must(d.Import(ctx, Caller{}, far.memory, strings.NewReader(file), nil))(t)
	want(t, "again, also of what was deleted since", fmt.Sprint(out.Added, out.Known), "0 7")
	_, err := d.Import(ctx, Caller{}, far.memory, strings.NewReader(`{"rawEntry":"`+strings.Repeat("x", 1<<20)+`"}`), nil)
	wantError(t, "a line beyond all", err, 400, CodeInvalid, "line 1")
	_, err = d.Import(ctx, Caller{Level: Write}, far.memory, strings.NewReader(file), nil)
	wantError(t, "level", err, 403, CodeForbidden)
}

func TestPromptsSayWhatTheContractAsksAndCanBeOverridden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := newDesk(t, func(c *Config) { c.Settings.PromptsDir = dir })
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range PromptKinds() {
		p, warnings, err := d.Prompts(kind)
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		want(t, "version and source", p.Version+p.Source, "v1default")
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
			if utf8.RuneCountInString(text) > maxPrompt || len(strings.Fields(text)) > maxPromptWords || text == "" {
				t.Errorf("a text of ours breaks the limit of overrides: %q", text)
			}
		}
	}
	_, _, err := d.Prompts("poem")
	wantError(t, "another kind", err, 404, CodeNotFound, `"allowed":["chat","code"]`)
	write("code/summary_prompt.md", "Be brief.\n")
	write("code/context_prompt.md", strings.Repeat("word ", 201))
	write("chat/context_prompt.md", strings.Repeat("x", 2049))
	p, warnings, err := d.Prompts("code")
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "context_prompt.md") {
		t.Errorf("%v %q", err, warnings)
	}
	want(t, "overridden", p.Templates.Summary+p.Source, "Be brief.override")
	p, warnings, err = d.Prompts("chat")
	want(t, "too long", fmt.Sprint(p.Source, len(warnings), err), "default1 <nil>")
}
