package memories_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/rules"
	"cairn/internal/memory/vaults"
)

// long returns n characters of more than one byte.
func long(n int) string { return strings.Repeat("é", n) }

func TestEveryLimitHoldsAtItsBorder(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	other := d.Add("another").EntryID
	tags := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprint("k", i)] = "v"
		}
		return out
	}
	vault := func(title, description string) error {
		_, _, err := d.CreateVault(ctx, memory.Caller{}, vaults.NewVault{Title: title, Description: description})
		return err
	}
	memoryID := func(title, kind, description string) error {
		_, _, err := d.CreateMemory(ctx, memory.Caller{}, vaults.NewMemory{VaultID: d.VaultID, Title: title, MemoryType: kind, Description: description})
		return err
	}
	entry := func(e contents.NewEntry) error {
		e.MemoryID = d.MemoryID
		if e.RawEntry == "" {
			e.RawEntry = "x"
		}
		_, _, err := d.AddEntry(ctx, memory.Caller{}, e)
		return err
	}
	document := func(text string) error {
		_, _, err := d.UpdateContext(ctx, memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: text})
		return err
	}
	correct := func(reason string) error {
		_, _, err := d.CorrectEntry(ctx, memory.Caller{}, d.MemoryID, d.Add("wrong").EntryID, entries.Correction{CorrectedEntryID: other, Reason: reason})
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
		{"title of 51", vault(strings.Repeat("a", 51), ""), 400, memory.CodeInvalid, "title exceeds 50 characters"},
		{"no title", vault("", ""), 400, memory.CodeInvalid, "title is required"},
		{"a blank in a title", vault("a b", ""), 400, memory.CodeInvalid, "title contains invalid characters; allowed letters, digits, hyphen"},
		{"an umlaut in a title", vault("ä", ""), 400, memory.CodeInvalid, "title contains invalid characters; allowed letters, digits, hyphen"},
		{"title of a memory", memoryID("a_b", "chat", ""), 400, memory.CodeInvalid, "title contains invalid characters; allowed letters, digits, hyphen"},
		{"description of 500", vault("d", long(500)), 0, "", ""},
		{"description of 501", vault("e", long(501)), 400, memory.CodeInvalid, `"field":"description"`},
		{"description of a memory of 501", memoryID("e", "", long(501)), 400, memory.CodeInvalid, `"field":"description"`},
		{"memoryType of 50", memoryID("t", strings.Repeat("a", 50), ""), 0, "", ""},
		{"memoryType of 51", memoryID("u", strings.Repeat("a", 51), ""), 400, memory.CodeInvalid, `"field":"memoryType"`},
		{"memoryType in capitals", memoryID("w", "Chat", ""), 400, memory.CodeInvalid, `"field":"memoryType"`},
		{"reason of 500", correct(long(500)), 0, "", ""},
		{"reason of 501", correct(long(501)), 400, memory.CodeInvalid, `"field":"reason"`},
		{"no reason", correct(""), 400, memory.CodeInvalid, `"field":"reason"`},
		{"rawEntry of 9,000", entry(contents.NewEntry{RawEntry: strings.Repeat("😀", 9000)}), 0, "", ""},
		{"rawEntry of 9,001", entry(contents.NewEntry{RawEntry: strings.Repeat("x", 9001)}), 413, memory.CodeEntryTooLarge, `"actual":9001,"field":"rawEntry","limit":9000`},
		{"a blank rawEntry", entry(contents.NewEntry{RawEntry: " \n\t\u3000"}), 400, memory.CodeInvalid, `"field":"rawEntry"`},
		{"summary of 512", entry(contents.NewEntry{Summary: long(512)}), 0, "", ""},
		{"summary of 513", entry(contents.NewEntry{Summary: long(513)}), 400, memory.CodeInvalid, `"field":"summary"`},
		{"32 tags", entry(contents.NewEntry{Tags: tags(32)}), 0, "", ""},
		{"33 tags", entry(contents.NewEntry{Tags: tags(33)}), 400, memory.CodeInvalid, `"field":"tags"`},
		{"tag key of 64", entry(contents.NewEntry{Tags: map[string]string{long(64): ""}}), 0, "", ""},
		{"tag key of 65", entry(contents.NewEntry{Tags: map[string]string{long(65): ""}}), 400, memory.CodeInvalid, `"field":"tags"`},
		{"an empty tag key", entry(contents.NewEntry{Tags: map[string]string{"": "v"}}), 400, memory.CodeInvalid, `"field":"tags"`},
		{"tag value of 256", entry(contents.NewEntry{Tags: map[string]string{"k": long(256)}}), 0, "", ""},
		{"tag value of 257", entry(contents.NewEntry{Tags: map[string]string{"k": long(257)}}), 400, memory.CodeInvalid, `"field":"tags"`},
		{"metadata of 16 KiB", entry(contents.NewEntry{Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 16<<10-8) + `"}`)}), 0, "", ""},
		{"metadata beyond 16 KiB", entry(contents.NewEntry{Metadata: json.RawMessage(`{"a":"` + strings.Repeat("x", 16<<10-7) + `"}`)}), 400, memory.CodeInvalid, `"field":"metadata"`},
		{"metadata 8 deep", entry(contents.NewEntry{Metadata: nested(8)}), 0, "", ""},
		{"metadata 9 deep", entry(contents.NewEntry{Metadata: nested(9)}), 400, memory.CodeInvalid, `"field":"metadata"`},
		{"metadata as an array", entry(contents.NewEntry{Metadata: json.RawMessage(`[]`)}), 400, memory.CodeInvalid, `"field":"metadata"`},
		{"metadata as null", entry(contents.NewEntry{Metadata: json.RawMessage(`null`)}), 400, memory.CodeInvalid, `"field":"metadata"`},
		{"context of 5,000", document(long(5000)), 0, "", ""},
		{"context of 5,001", document(long(5001)), 413, memory.CodeContextTooLarge, `"actual":5001,"field":"markdown","limit":5000`},
		{"a blank context", document("  \n"), 400, memory.CodeInvalid, `"field":"markdown"`},
	} {
		if c.status == 0 {
			if c.err != nil {
				t.Errorf("%s: %v", c.what, c.err)
			}
			continue
		}
		memorytest.WantError(t, c.what, c.err, c.status, c.code, c.message)
	}
	memorytest.Want(t, "the context that was too long left the earlier one", memorytest.Must(d.GetContext(ctx, memory.Caller{}, d.MemoryID))(t).Markdown, long(5000))
}

func TestNumbersAreClamped(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	for _, c := range []struct {
		asked       int64
		limit, topK int
	}{
		{math.MinInt64, 25, 10}, {-1, 25, 10}, {0, 25, 10}, {1, 1, 1}, {50, 50, 50}, {51, 50, 51}, {100, 50, 100}, {101, 50, 100}, {math.MaxInt64, 50, 100},
	} {
		list := memorytest.Must(d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID, Limit: c.asked}))(t)
		memorytest.Want(t, fmt.Sprint("limit ", c.asked), list.AppliedLimit, c.limit)
		memorytest.Want(t, fmt.Sprint("top_k ", c.asked), retrieval.TopK(c.asked), c.topK)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	ctx := t.Context()
	id := d.Add("x").EntryID
	entry := func(e contents.NewEntry) error {
		if e.RawEntry == "" {
			e.RawEntry = "x"
		}
		if e.MemoryID == "" {
			e.MemoryID = d.MemoryID
		}
		_, _, err := d.AddEntry(ctx, memory.Caller{}, e)
		return err
	}
	document := func(session, text string) error {
		_, _, err := d.UpdateContext(ctx, memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: session, Markdown: text})
		return err
	}
	list := func(a entries.ListArgs) error {
		a.MemoryID = d.MemoryID
		_, err := d.ListEntries(ctx, memory.Caller{}, a)
		return err
	}
	patch := func(memoryID, entry string, p entries.Patch) error {
		_, _, err := d.PatchEntry(ctx, memory.Caller{}, memoryID, entry, p)
		return err
	}
	as := func(user string) error {
		_, err := d.ListInflight(ctx, memory.Caller{UserID: user}, d.MemoryID, 0)
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
		{"memory_id missing", entryIn(d, ""), 400, memory.CodeInvalid, `"field":"memory_id"`},
		{"memory_id no UUID", entry(contents.NewEntry{MemoryID: "main"}), 400, memory.CodeInvalid, `"field":"memory_id"`},
		{"memory_id in braces", entry(contents.NewEntry{MemoryID: "{" + d.MemoryID + "}"}), 400, memory.CodeInvalid, `"field":"memory_id"`},
		{"memory_id as urn", entry(contents.NewEntry{MemoryID: "urn:uuid:" + d.MemoryID}), 400, memory.CodeInvalid, `"field":"memory_id"`},
		{"user_id no UUID", as("me"), 400, memory.CodeInvalid, `"field":"user_id"`},
		{"user_id another's", as(rules.NewID()), 404, memory.CodeNotFound, "user"},
		{"session_id bad in an entry", entry(contents.NewEntry{SessionID: "S-1"}), 400, memory.CodeInvalid, `"field":"session_id"`},
		{"session_id missing in a context", document("", "x"), 400, memory.CodeInvalid, `"field":"session_id"`},
		{"session_id with a bad letter", document("S-01J0000000000000000000000U", "x"), 400, memory.CodeInvalid, `"field":"session_id"`},
		{"session_id too large", document("S-80000000000000000000000000", "x"), 400, memory.CodeInvalid, `"field":"session_id"`},
		{"entry_id missing", patch(d.MemoryID, "", entries.Patch{Summary: &summary}), 400, memory.CodeInvalid, `"field":"entry_id"`},
		{"entry_id neither", patch(d.MemoryID, "pending-0", entries.Patch{Summary: &summary}), 400, memory.CodeInvalid, `"field":"entry_id"`},
		{"a patch of nothing", patch(d.MemoryID, id, entries.Patch{}), 400, memory.CodeInvalid, `"field":"tags"`},
		{"a patch of a localId", patch(d.MemoryID, "pending-1", entries.Patch{Summary: &summary}), 409, memory.CodeNotCommitted, ""},
		{"a bad patch of a foreign memory", patch(rules.NewID(), id, entries.Patch{}), 404, memory.CodeNotFound, "memory not found"},
		{"before with after", list(entries.ListArgs{Before: "2026-01-01T00:00:00Z", After: id}), 400, memory.CodeInvalid, "provide only one of before or after"},
		{"a cursor that is neither", list(entries.ListArgs{Before: "yesterday"}), 400, memory.CodeInvalid, `"field":"before"`},
		{"a cursor of elsewhere", list(entries.ListArgs{After: rules.NewID()}), 400, memory.CodeInvalid, `"field":"after"`},
		{"invalid UTF-8", entry(contents.NewEntry{RawEntry: "a\xff"}), 400, memory.CodeInvalid, "UTF-8"},
		{"half a surrogate pair as bytes", entry(contents.NewEntry{RawEntry: "\xed\xa0\x80"}), 400, memory.CodeInvalid, "UTF-8"},
		{"NUL", entry(contents.NewEntry{RawEntry: "a\x00"}), 400, memory.CodeInvalid, "NUL"},
		{"NUL in a summary", entry(contents.NewEntry{Summary: "a\x00"}), 400, memory.CodeInvalid, "NUL"},
		{"NUL in a tag", entry(contents.NewEntry{Tags: map[string]string{"k": "\x00"}}), 400, memory.CodeInvalid, "NUL"},
		{"NUL in metadata", entry(contents.NewEntry{Metadata: json.RawMessage(`{"a":"\u0000"}`)}), 400, memory.CodeInvalid, "NUL"},
		{"a lone high surrogate in metadata", entry(contents.NewEntry{Metadata: json.RawMessage(`{"a":"\ud800"}`)}), 400, memory.CodeInvalid, "surrogate"},
		{"a lone low surrogate in metadata", entry(contents.NewEntry{Metadata: json.RawMessage(`{"a":"\udc00x"}`)}), 400, memory.CodeInvalid, "surrogate"},
		{"two high surrogates in metadata", entry(contents.NewEntry{Metadata: json.RawMessage(`{"a":"\ud800\ud800"}`)}), 400, memory.CodeInvalid, "surrogate"},
		{"a number beyond all in metadata", entry(contents.NewEntry{Metadata: json.RawMessage(`{"a":1e999}`)}), 400, memory.CodeInvalid, ""},
		{"BEL in a context", document(rules.NewID(), "a\a"), 400, memory.CodeInvalid, "U+0007"},
		{"C1 in a context", document(rules.NewID(), "a\u0085"), 400, memory.CodeInvalid, "U+0085"},
		{"DEL in a context", document(rules.NewID(), "a\x7f"), 400, memory.CodeInvalid, "U+007F"},
		{"a non-character in a context", document(rules.NewID(), "a\ufdd0"), 400, memory.CodeInvalid, "U+FDD0"},
		{"another in a context", document(rules.NewID(), "a\U0001ffff"), 400, memory.CodeInvalid, "U+1FFFF"},
		{"an entry in a missing memory", entry(contents.NewEntry{MemoryID: rules.NewID()}), 404, memory.CodeNotFound, "memory not found"},
		{"a bad entry in a missing memory", entry(contents.NewEntry{MemoryID: rules.NewID(), Summary: long(600)}), 404, memory.CodeNotFound, "memory not found"},
		{"a key of 65 bytes", keyed(d, strings.Repeat("k", 65)), 400, memory.CodeInvalid, `"field":"idempotency_key"`},
		{"a key with an umlaut", keyed(d, "ä"), 400, memory.CodeInvalid, `"field":"idempotency_key"`},
		{"a negative timeout", d.AwaitConsistency(ctx, memory.Caller{}, d.MemoryID, -1), 400, memory.CodeInvalid, `"field":"timeout_ms"`},
	} {
		memorytest.WantError(t, c.what, c.err, c.status, c.code, c.part)
	}
	for what, err := range map[string]error{
		"controls and non-characters in an entry": entry(contents.NewEntry{RawEntry: "a\a\u0085\ufdd0\r\n"}),
		"a surrogate pair in metadata":            entry(contents.NewEntry{Metadata: json.RawMessage(`{"a":"\ud83d\ude00\\u0000"}`)}),
		"TAB, LF and CR in a context":             document(rules.NewID(), "a\t\r\n"),
		"ids in capitals":                         entry(contents.NewEntry{MemoryID: strings.ToUpper(d.MemoryID)}),
		"a key of 64 bytes":                       keyed(d, strings.Repeat("k", 64)),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	memorytest.Want(t, "byte for byte", memorytest.Must(d.ListEntries(ctx, memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID, Tags: []string{}}))(t).Count > 3, true)
}

func entryIn(d *memorytest.Desk, memoryID string) error {
	_, _, err := d.AddEntry(d.Context(), memory.Caller{}, contents.NewEntry{MemoryID: memoryID, RawEntry: "x"})
	return err
}

func keyed(d *memorytest.Desk, key string) error {
	_, _, err := d.AddEntry(d.Context(), memory.Caller{Key: key}, contents.NewEntry{MemoryID: d.MemoryID, RawEntry: "x"})
	return err
}
