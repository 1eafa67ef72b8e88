package hub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/replica"
)

const (
	maxTrace        = 64        // bytes
	maxDocument     = 512 << 10 // bytes: a document with all members at maximum length and every character escaped
	standardContext = 5000      // characters
	maxProjectUIDs  = 8
)

// invalid returns an error that names the invalid member of a request or an item.
func invalid(field, format string, args ...any) error {
	e := fault.Newf(fault.Invalid, memory.CodeInvalid, format, args...)
	e.Details = map[string]any{"field": field}
	return e
}

// firstOf returns the first error that is not nil.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// parse checks an item by the same rules as a device (memories §5).
func (h *Hub) parse(item replica.Item) (incoming, error) {
	in := incoming{seq: item.Seq, kind: item.Kind, op: item.Op, key: item.Key, size: len(item.Doc)}
	if err := firstOf(validateID("stream", item.Stream), rules.ValidateKey(item.Key), rules.CheckJSON("doc", item.Doc)); err != nil {
		return in, err
	}
	if len(item.Doc) > maxDocument {
		return in, invalid("doc", "doc exceeds %d bytes", maxDocument)
	}
	if err := json.Unmarshal(item.Doc, &in.doc); err != nil || !bytes.HasPrefix(bytes.TrimLeft(item.Doc, " \t\r\n"), []byte("{")) {
		return in, invalid("doc", "doc is not an object of the right types")
	}
	if len(in.doc.Traceparent) > maxTrace {
		in.doc.Traceparent = ""
	}
	var err error
	switch item.Kind + " " + item.Op {
	case "vault put":
		err = in.checkVault(item.Stream)
	case "memory put":
		err = in.checkMemory(item.Stream)
	case "entry put":
		err = in.checkEntry()
	case "entry patch":
		err = in.checkPatch()
	case "entry delete":
		in.doc = document{EntryID: in.doc.EntryID, Traceparent: in.doc.Traceparent}
		err = validateID("entryId", in.doc.EntryID)
	case "context put":
		err = in.checkContext(h.maxContext)
	case "vault delete", "memory delete":
	default:
		err = invalid("op", "there is no %.20q of kind %.20q", item.Op, item.Kind)
	}
	in.hash = in.identity()
	return in, err
}

// identity returns a hash of the parts that must not change between two deliveries of an item.
// It is the same if the second delivery is the pulled document of the first.
func (in incoming) identity() string {
	sum := sha256.New()
	corrects := ""
	if in.op == replica.OpPatch {
		corrects = in.doc.CorrectedEntryID
	}
	for _, part := range []string{in.kind, in.op, in.doc.Title, in.doc.RawEntry, in.doc.SessionID, in.doc.Markdown, corrects} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// validateID requires a UUID in lower case, as the hub stores it.
func validateID(field, id string) error {
	if lower, ok := rules.ParseID(id); !ok || lower != id {
		return invalid(field, "%s is not a UUID in lower case", field)
	}
	return nil
}

// parseTime parses a time that fits into nanoseconds.
func parseTime(field, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return time.Time{}, invalid(field, "%s is not a time in RFC 3339 from 1970 on", field)
	}
	return t, nil
}

func (in *incoming) checkVault(stream string) error {
	v := replica.Vault{VaultID: in.doc.VaultID, Title: in.doc.Title, CreationTime: in.doc.CreationTime}
	if in.doc.Description != nil {
		v.Description = *in.doc.Description
	}
	if v.VaultID != stream {
		return invalid("vaultId", "vaultId is not the stream")
	}
	in.doc.Vault = &v
	at, err := validateVault(v)
	in.at = at
	return err
}

func validateVault(v replica.Vault) (time.Time, error) {
	at, err := parseTime("creationTime", v.CreationTime)
	return at, firstOf(validateID("vaultId", v.VaultID), rules.ValidateTitle(v.Title, v.Description), err)
}

func (in *incoming) checkMemory(stream string) error {
	d := &in.doc
	if d.Description == nil {
		d.Description = new(string)
	}
	switch {
	case d.MemoryID != stream:
		return invalid("memoryId", "memoryId is not the stream")
	case d.Vault == nil:
		return invalid("vault", "vault is required")
	case d.VaultID != "" && d.VaultID != d.Vault.VaultID:
		return invalid("vaultId", "vaultId is not that of vault")
	}
	if len(d.ProjectUIDs) > maxProjectUIDs || slices.ContainsFunc(d.ProjectUIDs, isNotUID) {
		return invalid("projectUids", "projectUids must be at most %d uids of 20 hexadecimal digits", maxProjectUIDs)
	}
	_, verr := validateVault(*d.Vault)
	at, err := parseTime("creationTime", d.CreationTime)
	in.at = at
	return firstOf(rules.ValidateTitle(d.Title, *d.Description), rules.ValidateType(d.MemoryType), verr, err)
}

// isNotUID reports whether text is not the uid of a project.
func isNotUID(text string) bool {
	return len(text) != 20 || strings.Trim(text, "0123456789abcdef") != ""
}

func (in *incoming) checkEntry() error {
	d := &in.doc
	if d.SessionID != "" {
		if err := validateID("sessionId", d.SessionID); err != nil {
			return err
		}
	}
	if d.EntryID != "" && !isProposable(d.EntryID) {
		return invalid("entryId", "entryId is not a UUIDv4 in lower case")
	}
	if string(d.Metadata) == "null" {
		d.Metadata = nil
	}
	var summary string
	if d.Summary != nil {
		summary = *d.Summary
	}
	var tags map[string]string
	if d.Tags != nil {
		tags = *d.Tags
	}
	metadata, err := rules.ValidateEntry(d.RawEntry, summary, tags, d.Metadata)
	if err != nil {
		return err
	}
	d.Metadata = metadata
	if d.CorrectedEntryID != "" {
		if err := in.checkCorrection(); err != nil {
			return err
		}
	}
	in.at, err = parseTime("capturedTime", d.CapturedTime)
	return err
}

// isProposable reports whether a device may choose id for an entry: a UUIDv4.
func isProposable(id string) bool {
	return validateID("", id) == nil && id[14] == '4' && strings.IndexByte("89ab", id[19]) >= 0
}

func (in *incoming) checkPatch() error {
	d := in.doc
	corrects := d.CorrectedEntryID != ""
	if corrects == (d.Tags != nil || d.Summary != nil) {
		return invalid("doc", "a patch must have tags, summary or both, or a correction")
	}
	in.doc = document{EntryID: d.EntryID, Tags: d.Tags, Summary: d.Summary, Traceparent: d.Traceparent}
	if err := validateID("entryId", d.EntryID); err != nil {
		return err
	}
	if corrects {
		in.doc.CorrectedEntryID, in.doc.CorrectionReason, in.doc.CorrectionTime = d.CorrectedEntryID, d.CorrectionReason, d.CorrectionTime
		return in.checkCorrection()
	}
	var tags map[string]string
	if d.Tags != nil {
		tags = *d.Tags
	}
	return rules.ValidatePatch(d.Summary, tags)
}

func (in *incoming) checkCorrection() error {
	d := in.doc
	if d.CorrectedEntryID == d.EntryID {
		return invalid("correctedEntryId", "an entry cannot correct itself")
	}
	_, err := parseTime("correctionTime", d.CorrectionTime)
	return firstOf(validateID("correctedEntryId", d.CorrectedEntryID), rules.ValidateReason(d.CorrectionReason), err)
}

func (in *incoming) checkContext(most int) error {
	d := in.doc
	in.doc = document{
		ContextID: d.ContextID, SessionID: d.SessionID, Markdown: d.Markdown, Traceparent: d.Traceparent,
		BaseID: d.BaseID, SeenSeq: max(0, d.SeenSeq), ConflictWith: d.ConflictWith,
	}
	at, err := parseTime("updatedAt", d.UpdatedAt)
	in.at = at
	if d.BaseID != nil && *d.BaseID != "" {
		err = firstOf(err, validateID("baseId", *d.BaseID))
	}
	if d.ConflictWith != "" {
		err = firstOf(err, validateID("conflictWith", d.ConflictWith))
	}
	return firstOf(validateID("contextId", d.ContextID), validateID("sessionId", d.SessionID), rules.ValidateContext(d.Markdown, most), err)
}

// isToken reports whether text is 1 to limit printable ASCII characters.
func isToken(text string, limit int) bool {
	if text == "" || len(text) > limit {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e })
}
