package hub

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"cairn/internal/replica"
)

// document contains the members of the stored and pulled documents of all kinds. Other members
// of an item are not stored.
type document struct {
	EntryID   string `json:"entryId,omitempty"`
	ContextID string `json:"contextId,omitempty"`
	MemoryID  string `json:"memoryId,omitempty"`
	VaultID   string `json:"vaultId,omitempty"`

	MemoryType   string         `json:"memoryType,omitempty"`
	Title        string         `json:"title,omitempty"`
	Description  *string        `json:"description,omitempty"`
	CreationTime string         `json:"creationTime,omitempty"`
	Vault        *replica.Vault `json:"vault,omitempty"`
	ProjectUIDs  []string       `json:"projectUids,omitempty"`

	RawEntry     string             `json:"rawEntry,omitempty"`
	Summary      *string            `json:"summary,omitempty"`
	Tags         *map[string]string `json:"tags,omitempty"`
	Metadata     json.RawMessage    `json:"metadata,omitempty"`
	SessionID    string             `json:"sessionId,omitempty"`
	CapturedTime string             `json:"capturedTime,omitempty"`

	CorrectedEntryID string `json:"correctedEntryId,omitempty"`
	CorrectionReason string `json:"correctionReason,omitempty"`
	CorrectionTime   string `json:"correctionTime,omitempty"`

	Markdown  string `json:"markdown,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"`

	BaseID       *string `json:"baseId,omitempty"`       // the context over which this one was written, "" for none; nil if the device does not say
	SeenSeq      int64   `json:"seenSeq,omitempty"`      // the highest hub_seq that the writing device had seen
	ConflictWith string  `json:"conflictWith,omitempty"` // the context that became the current one instead

	Traceparent string `json:"traceparent,omitempty"`
}

// incoming is an item that has passed all checks that do not need the database.
type incoming struct {
	seq           int64
	kind, op, key string
	doc           document
	at            time.Time // capturedTime of an entry, updatedAt of a context, creationTime of the others
	size          int       // of the received document, in bytes
	hash          string    // of the parts that must be identical in every delivery of the key
}

// canonical returns a document in its stored form.
func (d document) canonical() (string, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return "", err
	}
	return string(bytes.TrimRight(text.Bytes(), "\n")), nil
}

// stored returns the stored form of an entry put: with its id and its canonical time.
func (d document) stored(memory, id string, ns int64) document {
	d.EntryID, d.MemoryID, d.CreationTime = id, memory, timeText(ns)
	if d.Summary == nil {
		d.Summary = new(string)
	}
	if d.Tags == nil {
		d.Tags = &map[string]string{}
	}
	d.VaultID, d.Title, d.Description, d.MemoryType, d.Vault, d.ProjectUIDs = "", "", nil, "", nil, nil
	d.ContextID, d.Markdown, d.UpdatedAt = "", "", ""
	return d
}

// patched returns an entry after a patch or a correction.
func (d document) patched(p document) document {
	if p.Summary != nil {
		d.Summary = p.Summary
	}
	if p.Tags != nil {
		d.Tags = p.Tags
	}
	if p.CorrectedEntryID != "" {
		d.CorrectedEntryID, d.CorrectionReason, d.CorrectionTime = p.CorrectedEntryID, p.CorrectionReason, p.CorrectionTime
	}
	return d
}

// has reports whether an entry has all tags, and belongs to the session if one is given.
func (d document) has(tags map[string]string, session string) bool {
	if session != "" && d.SessionID != session {
		return false
	}
	have := map[string]string{}
	if d.Tags != nil {
		have = *d.Tags
	}
	return !slices.ContainsFunc(slices.Collect(maps.Keys(tags)), func(k string) bool {
		v, ok := have[k]
		return !ok || v != tags[k]
	})
}

// timeText formats a time for documents.
func timeText(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
