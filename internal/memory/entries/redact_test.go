package entries_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
	"cairn/internal/redact"
)

func TestSecretsAreTakenOutUnlessRedactionIsOff(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	for _, c := range []struct {
		what   string
		filter *redact.Filter
		stored bool
	}{{"on", memorytest.Must(redact.New(redact.Options{}))(t), false}, {"off", nil, true}} {
		d := memorytest.NewDesk(t, func(x *memory.Config) { x.Filter = c.filter })
		added, _, err := d.AddEntry(t.Context(), memory.Caller{}, contents.NewEntry{
			MemoryID: d.MemoryID, RawEntry: "token " + secret, Summary: secret, Tags: map[string]string{"t": secret},
			Metadata: json.RawMessage(`{"deep":["` + secret + `"],"n":1.0}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = d.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: "see " + secret}); err != nil {
			t.Fatal(err)
		}
		e := memorytest.Must(d.GetEntry(t.Context(), memory.Caller{}, d.MemoryID, added.EntryID))(t)
		for name, text := range map[string]string{"raw": e.RawEntry, "summary": e.Summary, "tags": e.Tags["t"], "metadata": string(e.Metadata),
			"context": memorytest.Must(d.GetContext(t.Context(), memory.Caller{}, d.MemoryID))(t).Markdown} {
			memorytest.Want(t, "redaction "+c.what+": the secret is in "+name, strings.Contains(text, secret), c.stored)
		}
		var kept int
		d.Query(&kept, `SELECT (SELECT count(*) FROM changes WHERE instr(doc, ?1)) + (SELECT count(*) FROM memory_idempotency WHERE instr(body, ?1))`, secret)
		memorytest.Want(t, "redaction "+c.what+": in the log", kept > 0, c.stored)
	}
}
