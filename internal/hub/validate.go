package hub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/replica"
)

// Limits of memories §5.1, in code points unless bytes are named.
const (
	maxTitle       = 50
	maxDescription = 500
	maxMemoryType  = 50
	maxRawEntry    = 9000
	maxSummary     = 512
	maxTags        = 32
	maxTagKey      = 64
	maxTagValue    = 256
	maxMetadata    = 16 << 10 // bytes
	maxDepth       = 8
	maxReason      = 500
	maxTrace       = 64        // bytes
	maxDocument    = 512 << 10 // bytes: one of all the longest, escaped throughout

	standardContext = 5000
)

// problem is why an item is refused.
type problem struct {
	status int
	replica.Error
}

func invalid(field, format string, args ...any) *problem {
	return &problem{http.StatusBadRequest, replica.Error{
		Code: "validation_error", Message: fmt.Sprintf(format, args...), Details: map[string]any{"field": field},
	}}
}

func tooLarge(code, what string, limit, actual int) *problem {
	return &problem{http.StatusRequestEntityTooLarge, replica.Error{
		Code: code, Message: fmt.Sprintf("%s exceeds %d characters", what, limit), Details: map[string]any{"limit": limit, "actual": actual},
	}}
}

// parse checks an item as memories §5 has it. It is the one place that knows those
// rules.
func (h *Hub) parse(item replica.Item) (incoming, *problem) {
	in := incoming{seq: item.Seq, kind: item.Kind, op: item.Op, key: item.Key}
	switch {
	case !isUUID(item.Stream):
		return in, invalid("stream", "stream is not a UUID in lower case")
	case !isToken(item.Key, replica.MaxKeyBytes):
		return in, invalid("key", "key is not 1 to %d printable ASCII characters", replica.MaxKeyBytes)
	case len(item.Doc) > maxDocument:
		return in, invalid("doc", "doc exceeds %d bytes", maxDocument)
	}
	if p := soundText(item.Doc); p != nil {
		return in, p
	}
	if err := json.Unmarshal(item.Doc, &in.doc); err != nil || !bytes.HasPrefix(bytes.TrimLeft(item.Doc, " \t\r\n"), []byte("{")) {
		return in, invalid("doc", "doc is not an object of the right types")
	}
	if len(in.doc.Traceparent) > maxTrace {
		in.doc.Traceparent = ""
	}
	check, ok := map[string]func(*incoming, string) *problem{
		"vault put": checkVault, "vault delete": checkNothing, "memory put": checkMemory, "memory delete": checkNothing,
		"entry put": checkEntry, "entry patch": checkPatch, "entry delete": checkEntryDelete, "context put": h.checkContext,
	}[item.Kind+" "+item.Op]
	if !ok {
		return in, invalid("op", "there is no %.20q of kind %.20q", item.Op, item.Kind)
	}
	if p := check(&in, item.Stream); p != nil {
		return in, p
	}
	in.hash = in.identity()
	return in, nil
}

// identity is a hash of what cannot have changed between two deliveries of an item,
// even when the second is the pulled document of the first.
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

func checkNothing(*incoming, string) *problem { return nil }

func checkVault(in *incoming, stream string) *problem {
	v := replica.Vault{VaultID: in.doc.VaultID, Title: in.doc.Title, CreationTime: in.doc.CreationTime}
	if in.doc.Description != nil {
		v.Description = *in.doc.Description
	}
	if v.VaultID != stream {
		return invalid("vaultId", "vaultId is not the stream")
	}
	at, p := soundVault(v)
	in.at, in.doc.Vault = at, &v
	return p
}

func soundVault(v replica.Vault) (time.Time, *problem) {
	if !isUUID(v.VaultID) {
		return time.Time{}, invalid("vaultId", "vaultId is not a UUID in lower case")
	}
	if p := soundTitle(v.Title, v.Description); p != nil {
		return time.Time{}, p
	}
	return soundTime("creationTime", v.CreationTime)
}

func soundTitle(title, description string) *problem {
	switch {
	case title == "":
		return invalid("title", "title is required")
	case utf8.RuneCountInString(title) > maxTitle:
		return invalid("title", "title exceeds 50 characters")
	case !onlyOf(title, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"):
		return invalid("title", "title contains invalid characters; allowed letters, digits, hyphen")
	case utf8.RuneCountInString(description) > maxDescription:
		return invalid("description", "description exceeds %d characters", maxDescription)
	}
	return nil
}

func checkMemory(in *incoming, stream string) *problem {
	d := in.doc
	if d.Description == nil {
		in.doc.Description = new(string)
	}
	switch {
	case d.MemoryID != stream:
		return invalid("memoryId", "memoryId is not the stream")
	case d.Vault == nil:
		return invalid("vault", "vault is required")
	case d.VaultID != "" && d.VaultID != d.Vault.VaultID:
		return invalid("vaultId", "vaultId is not that of vault")
	case len(d.MemoryType) > maxMemoryType || d.MemoryType == "" || !onlyOf(d.MemoryType, "abcdefghijklmnopqrstuvwxyz0123456789_-"):
		return invalid("memoryType", "memoryType is not 1 to %d of a-z, 0-9, _ and -", maxMemoryType)
	}
	if p := soundTitle(d.Title, *in.doc.Description); p != nil {
		return p
	}
	if _, p := soundVault(*d.Vault); p != nil {
		return p
	}
	at, p := soundTime("creationTime", d.CreationTime)
	in.at = at
	return p
}

func checkEntry(in *incoming, _ string) *problem {
	d := in.doc
	raw := utf8.RuneCountInString(d.RawEntry)
	switch {
	case strings.TrimSpace(d.RawEntry) == "":
		return invalid("rawEntry", "rawEntry is blank")
	case raw > maxRawEntry:
		return tooLarge("entry_too_large", "rawEntry", maxRawEntry, raw)
	case d.SessionID != "" && !isUUID(d.SessionID):
		return invalid("sessionId", "sessionId is not a UUID in lower case")
	case d.EntryID != "" && !isRandomUUID(d.EntryID):
		return invalid("entryId", "entryId is not a UUIDv4 in lower case")
	}
	if p := soundExtras(d); p != nil {
		return p
	}
	if string(d.Metadata) == "null" {
		in.doc.Metadata = nil
	} else if len(d.Metadata) > 0 {
		if p := soundMetadata(d.Metadata); p != nil {
			return p
		}
	}
	if d.CorrectedEntryID != "" {
		if p := checkCorrection(in); p != nil {
			return p
		}
	}
	at, p := soundTime("capturedTime", d.CapturedTime)
	in.at = at
	return p
}

// soundExtras checks what of an entry may change.
func soundExtras(d document) *problem {
	if d.Summary != nil && utf8.RuneCountInString(*d.Summary) > maxSummary {
		return invalid("summary", "summary exceeds %d characters", maxSummary)
	}
	if d.Tags == nil {
		return nil
	}
	if len(*d.Tags) > maxTags {
		return invalid("tags", "there are more than %d tags", maxTags)
	}
	for k, v := range *d.Tags {
		if n := utf8.RuneCountInString(k); n < 1 || n > maxTagKey || utf8.RuneCountInString(v) > maxTagValue {
			return invalid("tags", "a tag's key has 1 to %d characters, its value up to %d", maxTagKey, maxTagValue)
		}
	}
	return nil
}

func soundMetadata(raw json.RawMessage) *problem {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	if raw[0] != '{' || len(raw) > maxMetadata || deepest > maxDepth {
		return invalid("metadata", "metadata is not an object of at most %d bytes and %d levels", maxMetadata, maxDepth)
	}
	return nil
}

func checkPatch(in *incoming, _ string) *problem {
	d := in.doc
	if !isUUID(d.EntryID) {
		return invalid("entryId", "entryId is not a UUID in lower case")
	}
	corrects := d.CorrectedEntryID != ""
	if corrects == (d.Tags != nil || d.Summary != nil) {
		return invalid("doc", "a patch has tags, summary or both, or it corrects")
	}
	in.doc = document{EntryID: d.EntryID, Tags: d.Tags, Summary: d.Summary, Traceparent: d.Traceparent}
	if corrects {
		in.doc.CorrectedEntryID, in.doc.CorrectionReason, in.doc.CorrectionTime = d.CorrectedEntryID, d.CorrectionReason, d.CorrectionTime
		return checkCorrection(in)
	}
	return soundExtras(d)
}

func checkCorrection(in *incoming) *problem {
	d := in.doc
	if !isUUID(d.CorrectedEntryID) || d.CorrectedEntryID == d.EntryID {
		return invalid("correctedEntryId", "correctedEntryId is not the UUID of another entry")
	}
	if n := utf8.RuneCountInString(d.CorrectionReason); n < 1 || n > maxReason {
		return invalid("correctionReason", "correctionReason has 1 to %d characters", maxReason)
	}
	_, p := soundTime("correctionTime", d.CorrectionTime)
	return p
}

func checkEntryDelete(in *incoming, _ string) *problem {
	if !isUUID(in.doc.EntryID) {
		return invalid("entryId", "entryId is not a UUID in lower case")
	}
	in.doc = document{EntryID: in.doc.EntryID, Traceparent: in.doc.Traceparent}
	return nil
}

func (h *Hub) checkContext(in *incoming, _ string) *problem {
	d := in.doc
	n := utf8.RuneCountInString(d.Markdown)
	switch {
	case !isUUID(d.ContextID):
		return invalid("contextId", "contextId is not a UUID in lower case")
	case !isUUID(d.SessionID):
		return invalid("sessionId", "sessionId is not a UUID in lower case")
	case strings.TrimSpace(d.Markdown) == "":
		return invalid("markdown", "markdown is blank")
	case n > h.maxContext:
		return tooLarge("context_too_large", "markdown", h.maxContext, n)
	case strings.ContainsFunc(d.Markdown, isStrange):
		return invalid("markdown", "markdown has control characters or non-characters")
	}
	in.doc = document{ContextID: d.ContextID, SessionID: d.SessionID, Markdown: d.Markdown, Traceparent: d.Traceparent}
	at, p := soundTime("updatedAt", d.UpdatedAt)
	in.at = at
	return p
}

// isStrange reports what no context may hold (memories §5.3).
func isStrange(r rune) bool {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return false
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return true
	}
	return r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
}

// soundTime reads a time that fits into nanoseconds.
func soundTime(field, text string) (time.Time, *problem) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return time.Time{}, invalid(field, "%s is not a time in RFC 3339 from 1970 on", field)
	}
	return t, nil
}

// soundText refuses what encoding/json would silently replace, and NUL.
func soundText(raw []byte) *problem {
	bad := invalid("doc", "doc has invalid UTF-8, a lone surrogate or NUL")
	if !utf8.Valid(raw) {
		return bad
	}
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		switch v, ok := hex4(raw, i+1); {
		case !ok:
			return bad
		case v == 0 || v >= 0xdc00 && v <= 0xdfff:
			return bad
		case v >= 0xd800 && v <= 0xdbff:
			low, ok := hex4(raw, i+7)
			if !ok || raw[i+5] != '\\' || raw[i+6] != 'u' || low < 0xdc00 || low > 0xdfff {
				return bad
			}
			i += 6
		}
		i += 4
	}
	return nil
}

func hex4(raw []byte, at int) (v rune, ok bool) {
	if at+4 > len(raw) {
		return 0, false
	}
	var b [2]byte
	if _, err := hex.Decode(b[:], raw[at:at+4]); err != nil {
		return 0, false
	}
	return rune(b[0])<<8 | rune(b[1]), true
}

func onlyOf(text, allowed string) bool { return strings.Trim(text, allowed) == "" }

// isToken reports whether text is 1 to limit printable ASCII characters.
func isToken(text string, limit int) bool {
	if text == "" || len(text) > limit {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r > 0x7e })
}
