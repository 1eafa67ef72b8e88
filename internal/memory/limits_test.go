package memory

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory/rules"
	"cairn/internal/redact"
)

// long returns n characters of more than one byte.
func long(n int) string { return strings.Repeat("é", n) }

func TestEveryLimitHoldsAtItsBorder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	other := d.add("another").EntryID
	tags := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprint("k", i)] = "v"
		}
		return out
	}
	vault := func(title, description string) error {
		_, _, err := d.CreateVault(ctx, Caller{}, NewVault{title, description})
		return err
	}
	memory := func(title, kind, description string) error {
		_, _, err := d.CreateMemory(ctx, Caller{}, NewMemory{d.vault, title, kind, description})
		return err
	}
	entry := func(e NewEntry) error {
		e.MemoryID = d.memory
		if e.RawEntry == "" {
			e.RawEntry = "x"
		}
		_, _, err := d.AddEntry(ctx, Caller{}, e)
		return err
	}
	document := func(text string) error {
		_, _, err := d.UpdateContext(ctx, Caller{}, NewDocument{d.memory, rules.NewID(), text})
		return err
	}
	correct := func(reason string) error {
		_, _, err := d.CorrectEntry(ctx, Caller{}, d.memory, d.add("wrong").EntryID, Correction{other, reason})
		return err
	}
	nested := func(n int) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n))
	}
	for _, c := range []struct {
		what    string
		err     error
		status  int // 0: accepted
		code    string
		message string
	}{
		{"title of 50", vault(strings.Repeat("a", 50), ""), 0, "", ""},
		{"title of 51", vault(strings.Repeat("a", 51), ""), 400, CodeInvalid, "title exceeds 50 characters"},
		{"no title", vault("", ""), 400, CodeInvalid, "title is required"},
		{"a blank in a title", vault("a b", ""), 400, CodeInvalid, "title contains invalid characters; allowed letters, digits, hyphen"},
		{"an umlaut in a title", vault("ä", ""), 400, CodeInvalid, "title contains invalid characters; allowed letters, digits, hyphen"},
		{"title of a memory", memory("a_b", "chat", ""), 400, CodeInvalid, "title contains invalid characters; allowed letters, digits, hyphen"},
		{"description of 500", vault("d", long(500)), 0, "", ""},
		{"description of 501", vault("e", long(501)), 400, CodeInvalid, `"field":"description"`},
		{"description of a memory of 501", memory("e", "", long(501)), 400, CodeInvalid, `"field":"description"`},
		{"memoryType of 50", memory("t", strings.Repeat("a", 50), ""), 0, "", ""},
		{"memoryType of 51", memory("u", strings.Repeat("a", 51), ""), 400, CodeInvalid, `"field":"memoryType"`},
		{"memoryType in capitals", memory("w", "Chat", ""), 400, CodeInvalid, `"field":"memoryType"`},
		{"reason of 500", correct(long(500)), 0, "", ""},
		{"reason of 501", correct(long(501)), 400, CodeInvalid, `"field":"reason"`},
		{"no reason", correct(""), 400, CodeInvalid, `"field":"reason"`},
		{"rawEntry of 9,000", entry(NewEntry{RawEntry: strings.Repeat("😀", 9000)}), 0, "", ""},
		{"rawEntry of 9,001", entry(NewEntry{RawEntry: strings.Repeat("x", 9001)}), 413, CodeEntryTooLarge, `"actual":9001,"field":"rawEntry","limit":9000`},
		{"a blank rawEntry", entry(NewEntry{RawEntry: " \n\t\u3000"}), 400, CodeInvalid, `"field":"rawEntry"`},
		{"summary of 512", entry(NewEntry{Summary: long(512)}), 0, "", ""},
		{"summary of 513", entry(NewEntry{Summary: long(513)}), 400, CodeInvalid, `"field":"summary"`},
		{"32 tags", entry(NewEntry{Tags: tags(32)}), 0, "", ""},
		{"33 tags", entry(NewEntry{Tags: tags(33)}), 400, CodeInvalid, `"field":"tags"`},
		{"tag key of 64", entry(NewEntry{Tags: map[string]string{long(64): ""}}), 0, "", ""},
		{"tag key of 65", entry(NewEntry{Tags: map[string]string{long(65): ""}}), 400, CodeInvalid, `"field":"tags"`},
		{"an empty tag key", entry(NewEntry{Tags: map[string]string{"": "v"}}), 400, CodeInvalid, `"field":"tags"`},
		{"tag value of 256", entry(NewEntry{Tags: map[string]string{"k": long(256)}}), 0, "", ""},
		{"tag value of 257", entry(NewEntry{Tags: map[string]string{"k": long(257)}}), 400, CodeInvalid, `"field":"tags"`},
		{"metadata of 16 KiB", entry(NewEntry{Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 16<<10-8) + `"}`)}), 0, "", ""},
		{"metadata beyond 16 KiB", entry(NewEntry{Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 16<<10-7) + `"}`)}), 400, CodeInvalid, `"field":"metadata"`},
		{"metadata 8 deep", entry(NewEntry{Metadata: nested(8)}), 0, "", ""},
		{"metadata 9 deep", entry(NewEntry{Metadata: nested(9)}), 400, CodeInvalid, `"field":"metadata"`},
		{"metadata as an array", entry(NewEntry{Metadata: json.RawMessage(`[]`)}), 400, CodeInvalid, `"field":"metadata"`},
		{"metadata as null", entry(NewEntry{Metadata: json.RawMessage(`null`)}), 400, CodeInvalid, `"field":"metadata"`},
		{"context of 5,000", document(long(5000)), 0, "", ""},
		{"context of 5,001", document(long(5001)), 413, CodeContextTooLarge, `"actual":5001,"field":"markdown","limit":5000`},
		{"a blank context", document("  \n"), 400, CodeInvalid, `"field":"markdown"`},
	} {
		if c.status == 0 {
			if c.err != nil {
				t.Errorf("%s: %v", c.what, c.err)
			}
			continue
		}
		wantError(t, c.what, c.err, c.status, c.code, c.message)
	}
	want(t, "the context that was too long left the earlier one", must(d.GetContext(ctx, Caller{}, d.memory))(t).Markdown, long(5000))
}

func TestNumbersAreClamped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked       int64
		limit, topK int
	}{
		{math.MinInt64, 25, 10}, {-1, 25, 10}, {0, 25, 10}, {1, 1, 1}, {50, 50, 50}, {51, 50, 51}, {100, 50, 100}, {101, 50, 100}, {math.MaxInt64, 50, 100},
	} {
		want(t, fmt.Sprint("limit ", c.asked), Limit(c.asked), c.limit)
		want(t, fmt.Sprint("top_k ", c.asked), TopK(c.asked), c.topK)
	}
}

func TestSettingsHaveRanges(t *testing.T) {
	t.Parallel()
	if err := Defaults().Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Settings){
		"memory.shards":             func(s *Settings) { s.Shards = 0 },
		"memory.queue_len":          func(s *Settings) { s.QueueLen = 0 },
		"memory.enqueue_timeout_ms": func(s *Settings) { s.EnqueueTimeout = -time.Millisecond },
		"memory.max_context_chars":  func(s *Settings) { s.MaxContextChars = 0 },
		"memory.delete_timeout_ms":  func(s *Settings) { s.DeleteTimeout = time.Hour },
		"memory.retention_days":     func(s *Settings) { s.RetentionDays = 0 },
		"memory.retention_mb":       func(s *Settings) { s.RetentionMB = 0 },
		"memory.purge_chunk":        func(s *Settings) { s.PurgeChunk = 0 },
	} {
		s := Defaults()
		spoil(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s out of its range: %v", name, err)
		}
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	id := d.add("x").EntryID
	entry := func(e NewEntry) error {
		if e.RawEntry == "" {
			e.RawEntry = "x"
		}
		if e.MemoryID == "" {
			e.MemoryID = d.memory
		}
		_, _, err := d.AddEntry(ctx, Caller{}, e)
		return err
	}
	document := func(session, text string) error {
		_, _, err := d.UpdateContext(ctx, Caller{}, NewDocument{d.memory, session, text})
		return err
	}
	list := func(a ListArgs) error {
		a.MemoryID = d.memory
		_, err := d.ListEntries(ctx, Caller{}, a)
		return err
	}
	patch := func(memory, entry string, p Patch) error {
		_, _, err := d.PatchEntry(ctx, Caller{}, memory, entry, p)
		return err
	}
	as := func(user string) error {
		_, err := d.ListInflight(ctx, Caller{UserID: user}, d.memory, 0)
		return err
	}
	summary := "s"
	for _, c := range []struct {
		what   string
		err    error
		status int
		code   string
		part   string
	}{
		{"memory_id missing", entryIn(d, ""), 400, CodeInvalid, `"field":"memory_id"`},
		{"memory_id no UUID", entry(NewEntry{MemoryID: "main"}), 400, CodeInvalid, `"field":"memory_id"`},
		{"memory_id in braces", entry(NewEntry{MemoryID: "{" + d.memory + "}"}), 400, CodeInvalid, `"field":"memory_id"`},
		{"memory_id as urn", entry(NewEntry{MemoryID: "urn:uuid:" + d.memory}), 400, CodeInvalid, `"field":"memory_id"`},
		{"user_id no UUID", as("me"), 400, CodeInvalid, `"field":"user_id"`},
		{"user_id another's", as(rules.NewID()), 404, CodeNotFound, "user"},
		{"session_id bad in an entry", entry(NewEntry{SessionID: "S-1"}), 400, CodeInvalid, `"field":"session_id"`},
		{"session_id missing in a context", document("", "x"), 400, CodeInvalid, `"field":"session_id"`},
		{"session_id with a bad letter", document("S-01J0000000000000000000000U", "x"), 400, CodeInvalid, `"field":"session_id"`},
		{"session_id too large", document("S-80000000000000000000000000", "x"), 400, CodeInvalid, `"field":"session_id"`},
		{"entry_id missing", patch(d.memory, "", Patch{Summary: &summary}), 400, CodeInvalid, `"field":"entry_id"`},
		{"entry_id neither", patch(d.memory, "pending-0", Patch{Summary: &summary}), 400, CodeInvalid, `"field":"entry_id"`},
		{"a patch of nothing", patch(d.memory, id, Patch{}), 400, CodeInvalid, `"field":"tags"`},
		{"a patch of a localId", patch(d.memory, "pending-1", Patch{Summary: &summary}), 409, CodeNotCommitted, ""},
		{"a bad patch of a foreign memory", patch(rules.NewID(), id, Patch{}), 404, CodeNotFound, "memory not found"},
		{"before with after", list(ListArgs{Before: "2026-01-01T00:00:00Z", After: id}), 400, CodeInvalid, "provide only one of before or after"},
		{"a cursor that is neither", list(ListArgs{Before: "yesterday"}), 400, CodeInvalid, `"field":"before"`},
		{"a cursor of elsewhere", list(ListArgs{After: rules.NewID()}), 400, CodeInvalid, `"field":"after"`},
		{"invalid UTF-8", entry(NewEntry{RawEntry: "a\xff"}), 400, CodeInvalid, "UTF-8"},
		{"half a surrogate pair as bytes", entry(NewEntry{RawEntry: "\xed\xa0\x80"}), 400, CodeInvalid, "UTF-8"},
		{"NUL", entry(NewEntry{RawEntry: "a\x00"}), 400, CodeInvalid, "NUL"},
		{"NUL in a summary", entry(NewEntry{Summary: "a\x00"}), 400, CodeInvalid, "NUL"},
		{"NUL in a tag", entry(NewEntry{Tags: map[string]string{"k": "\x00"}}), 400, CodeInvalid, "NUL"},
		{"NUL in metadata", entry(NewEntry{Metadata: json.RawMessage(`{"a":"\u0000"}`)}), 400, CodeInvalid, "NUL"},
		{"a lone high surrogate in metadata", entry(NewEntry{Metadata: json.RawMessage(`{"a":"\ud800"}`)}), 400, CodeInvalid, "surrogate"},
		{"a lone low surrogate in metadata", entry(NewEntry{Metadata: json.RawMessage(`{"a":"\udc00x"}`)}), 400, CodeInvalid, "surrogate"},
		{"two high surrogates in metadata", entry(NewEntry{Metadata: json.RawMessage(`{"a":"\ud800\ud800"}`)}), 400, CodeInvalid, "surrogate"},
		{"a number beyond all in metadata", entry(NewEntry{Metadata: json.RawMessage(`{"a":1e999}`)}), 400, CodeInvalid, ""},
		{"BEL in a context", document(rules.NewID(), "a\a"), 400, CodeInvalid, "U+0007"},
		{"C1 in a context", document(rules.NewID(), "a\u0085"), 400, CodeInvalid, "U+0085"},
		{"DEL in a context", document(rules.NewID(), "a\x7f"), 400, CodeInvalid, "U+007F"},
		{"a non-character in a context", document(rules.NewID(), "a\ufdd0"), 400, CodeInvalid, "U+FDD0"},
		{"another in a context", document(rules.NewID(), "a\U0001ffff"), 400, CodeInvalid, "U+1FFFF"},
		{"an entry in a missing memory", entry(NewEntry{MemoryID: rules.NewID()}), 404, CodeNotFound, "memory not found"},
		{"a bad entry in a missing memory", entry(NewEntry{MemoryID: rules.NewID(), Summary: long(600)}), 404, CodeNotFound, "memory not found"},
		{"a key of 65 bytes", keyed(d, strings.Repeat("k", 65)), 400, CodeInvalid, `"field":"idempotency_key"`},
		{"a key with an umlaut", keyed(d, "ä"), 400, CodeInvalid, `"field":"idempotency_key"`},
		{"a negative timeout", d.AwaitConsistency(ctx, Caller{}, d.memory, -1), 400, CodeInvalid, `"field":"timeout_ms"`},
	} {
		wantError(t, c.what, c.err, c.status, c.code, c.part)
	}
	for what, err := range map[string]error{
		"controls and non-characters in an entry": entry(NewEntry{RawEntry: "a\a\u0085\ufdd0\r\n"}),
		"a surrogate pair in metadata":            entry(NewEntry{Metadata: json.RawMessage(`{"a":"\ud83d\ude00\\u0000"}`)}),
		"TAB, LF and CR in a context":             document(rules.NewID(), "a\t\r\n"),
		"ids in capitals":                         entry(NewEntry{MemoryID: strings.ToUpper(d.memory)}),
		"a key of 64 bytes":                       keyed(d, strings.Repeat("k", 64)),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	want(t, "byte for byte", must(d.ListEntries(ctx, Caller{}, ListArgs{MemoryID: d.memory, Tags: []string{}}))(t).Count > 3, true)
}

func entryIn(d *desk, memory string) error {
	_, _, err := d.AddEntry(d.Context(), Caller{}, NewEntry{MemoryID: memory, RawEntry: "x"})
	return err
}

func keyed(d *desk, key string) error {
	_, _, err := d.AddEntry(d.Context(), Caller{Key: key}, NewEntry{MemoryID: d.memory, RawEntry: "x"})
	return err
}

func TestEveryTextThatIsNoLocalIDIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "pending-", "pending-0", "pending-01", "Pending-1", "pending--1", "pending-+1", " pending-1", "pending-1 ", "pending-1x", "pending-1.0",
		"pending-9223372036854775808", "pending-99999999999999999999", "pending-\u0661", "1", "context-1", rules.NewID(), "pending-1\n",
	} {
		_, err := parseLocalID(text)
		wantError(t, text, err, 400, CodeLocalID, `"field":"local_id"`)
	}
	for text, key := range map[string]int64{"pending-1": 1, "pending-10": 10, "pending-9223372036854775807": math.MaxInt64} {
		got, err := parseLocalID(text)
		if err != nil || got != key {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

func TestSecretsAreTakenOutUnlessRedactionIsOff(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	for _, c := range []struct {
		what   string
		filter *redact.Filter
		stored bool
	}{{"on", must(redact.New(redact.Options{}))(t), false}, {"off", nil, true}} {
		d := newDesk(t, func(x *Config) { x.Filter = c.filter })
		added, _, err := d.AddEntry(t.Context(), Caller{}, NewEntry{
			MemoryID: d.memory, RawEntry: "token " + secret, Summary: secret, Tags: map[string]string{"t": secret},
			Metadata: json.RawMessage(`{"deep":["` + secret + `"],"n":1.0}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = d.UpdateContext(t.Context(), Caller{}, NewDocument{d.memory, rules.NewID(), "see " + secret}); err != nil {
			t.Fatal(err)
		}
		e := must(d.GetEntry(t.Context(), Caller{}, d.memory, added.EntryID))(t)
		for name, text := range map[string]string{"raw": e.RawEntry, "summary": e.Summary, "tags": e.Tags["t"], "metadata": string(e.Metadata),
			"context": must(d.GetContext(t.Context(), Caller{}, d.memory))(t).Markdown} {
			want(t, "redaction "+c.what+": the secret is in "+name, strings.Contains(text, secret), c.stored)
		}
		var kept int
		d.query(&kept, `SELECT (SELECT count(*) FROM changes WHERE instr(doc, ?1)) + (SELECT count(*) FROM memory_idempotency WHERE instr(body, ?1))`, secret)
		want(t, "redaction "+c.what+": in the log", kept > 0, c.stored)
	}
}
