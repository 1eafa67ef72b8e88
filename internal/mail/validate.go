package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/pathpattern"
	"cairn/internal/project"
	"cairn/internal/strictjson"
)

// Limits for documents from other stores. They are above the limits of the calls, which
// settings can change.
const (
	maxForeignLine    = 16 << 10 // bytes of a name, subject, reason or path
	maxForeignText    = 1 << 20  // of a task description
	maxForeignNumber  = 1 << 50  // clients read numbers as floats, and higher numbers will follow
	maxForeignOrdinal = 1 << 31
	maxForeignNames   = 10_000 // recipients
)

// Validate returns an error if a single document is invalid, else nil. The error is
// human-readable and does not contain the document's texts. Every document that calls of this
// package store is valid. A row that a salvage made up is not.
func Validate(d Document) error {
	for _, text := range linesOf(d) {
		if len(text) > maxForeignLine || Flat(text) != text {
			return errors.New("one of its texts is too long, or has several lines")
		}
	}
	if !isLower(d.StreamProject(), 20) {
		return errors.New("its project_uid cannot be one")
	}
	return d.Validate()
}

// linesOf returns the texts of a document that must be one line each.
func linesOf(d Document) []string {
	switch d := d.(type) {
	case *Project:
		return []string{d.Slug, d.HumanKey, d.ProductID, Deref(d.Remote)}
	case *Agent:
		return []string{d.Program, d.Model, Deref(d.Branch), Deref(d.Worktree), Deref(d.Home)}
	case *Message:
		return []string{d.Subject}
	case *Delivery:
		return []string{Deref(d.ShownVia)}
	case *Contact:
		return []string{d.Reason}
	case *Reservation:
		return []string{d.PathPattern, d.Reason, d.Source, Deref(d.Session), Deref(d.ReleaseKind)}
	case *Blob:
		return []string{d.MediaType}
	}
	return nil
}

func Deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// isLower reports whether a text consists of n digits and lower-case letters.
func isLower(text string, n int) bool {
	return len(text) == n && IsPlain(text) && strings.ToLower(text) == text && !strings.ContainsAny(text, "._-")
}

// isForeignName reports whether a text can be an agent's name. Names of files contain it.
func isForeignName(name string) bool {
	return name != "" && len(name) <= 200 && IsPlain(name) && !strings.ContainsAny(name, "._") && !isDevice(name)
}

func isNumber(n int64) bool { return 0 < n && n <= maxForeignNumber }

func oneOf(text string, words ...string) bool { return slices.Contains(words, text) }

func (p *Project) Validate() error {
	switch {
	case !isNumber(p.ID):
		return errors.New("its number is out of range")
	case p.Format != 1:
		return fault.Newf(fault.Unavailable, CodeFormat, "its project has format %d", p.Format)
	case p.Slug == "" || len(p.Slug) > 200 || slugWord(p.Slug) != p.Slug:
		return errors.New("its slug cannot be one")
	case !project.IsAbsolute(p.HumanKey):
		return errors.New("its human_key is no absolute path")
	case !oneOf(p.IdentityMode, ModeDir, modeRemote, modeToplevel, modeCommon):
		return errors.New("its identity_mode is invalid")
	case p.ProductID == "" || p.Created <= 0:
		return errors.New("it has no project_id or no time")
	}
	return nil
}

func (a *Agent) Validate() error {
	switch {
	case !isNumber(a.ID):
		return errors.New("its number is out of range")
	case !isForeignName(a.Name):
		return errors.New("its name cannot be an agent's")
	case len(a.TaskDescription) > maxForeignText || strings.ContainsRune(a.TaskDescription, 0):
		return errors.New("its task_description is too long, or not text")
	case !oneOf(a.AttachmentsPolicy, "auto", "inline", "file", "none") || !oneOf(a.ContactPolicy, "open", "auto", "contacts_only", "block_all"):
		return errors.New("its attachments_policy or contact_policy is invalid")
	case a.TokenSHA256 != nil && (!isLower(*a.TokenSHA256, 64)):
		return errors.New("its token_sha256 cannot be one")
	case a.Inception <= 0 || a.Retired < 0:
		return errors.New("its times are out of range")
	}
	return nil
}

func (m *Message) Validate() error {
	thread, err := ThreadID(Deref(m.ThreadID))
	topic, terr := TopicOf(Deref(m.Topic))
	switch {
	case !isLower(m.UID, 26):
		return errors.New("its uid cannot be one")
	case !m.numbersFit():
		return errors.New("one of its numbers is out of range")
	case err != nil || terr != nil || !SameText(thread, m.ThreadID) || !SameText(topic, m.Topic):
		return errors.New("its thread_id or topic cannot be one")
	case !oneOf(m.Importance, "low", "normal", "high", "urgent"):
		return errors.New("its importance is invalid")
	case m.Created <= 0:
		return errors.New("its time is out of range")
	case strings.ContainsRune(m.Body, 0) || !utf8.ValidString(m.Body):
		return errors.New("its body is not text")
	case utf8.RuneCountInString(m.Subject) > MaxSubject:
		return errors.New("its subject is too long")
	}
	if err := m.validatePurged(); err != nil {
		return err
	}
	return m.validateNames()
}

func (m *Message) numbersFit() bool {
	return isNumber(m.ID) && 0 < m.Ordinal && m.Ordinal <= maxForeignOrdinal && (m.ReplyTo == nil || isNumber(*m.ReplyTo))
}

// validatePurged checks the attachments, and that a purged message has no content left.
func (m *Message) validatePurged() error {
	attached, err := m.ParseAttachments()
	if err != nil {
		return err
	}
	for _, sha1 := range m.Dropped {
		if m.Purged == 0 || !isLower(sha1, 40) {
			return errors.New("its dropped attachments cannot be some")
		}
	}
	if m.Purged < 0 || m.Purged > 0 && (m.Subject != "" || m.Body != "" || len(attached) > 0) {
		return errors.New("it is purged and has a text")
	}
	return nil
}

func (m *Message) validateNames() error {
	all := append(slices.Concat(m.To, m.CC, m.BCC), m.From)
	if len(all) > maxForeignNames {
		return errors.New("it has too many recipients")
	}
	seen := map[string]bool{}
	for i, name := range all {
		key := strings.ToLower(name)
		switch {
		case !isForeignName(name):
			return errors.New("one of its names cannot be an agent's")
		case seen[key] && i < len(all)-1: // the sender may write to itself
			return errors.New("one of its recipients is listed twice")
		}
		seen[key] = true
	}
	return nil
}

// ParseAttachments parses the attachments of a message. An unknown field is an error.
func (m *Message) ParseAttachments() (list []Attachment, err error) {
	if len(m.Attachments) == 0 || string(m.Attachments) == "null" {
		return nil, nil
	}
	if err := StrictJSON(m.Attachments, &list); err != nil {
		return nil, fmt.Errorf("its attachments: %w", err)
	}
	for _, a := range list {
		text := a.Type + a.MediaType + a.Path + a.OriginalPath
		if a.SHA1 != "" && !isLower(a.SHA1, 40) || len(text) > 4*maxForeignLine || strings.ContainsRune(text, 0) {
			return nil, errors.New("one of its attachments cannot be one")
		}
	}
	return list, nil
}

func (d *Delivery) Validate() error {
	switch {
	case !isLower(d.UID, 26) || !isNumber(d.MessageID):
		return errors.New("its message cannot be one")
	case !isForeignName(d.Agent):
		return errors.New("its agent's name cannot be one")
	case !oneOf(d.Recipient, "to", "cc", "bcc"):
		return errors.New("its kind is invalid")
	case d.Shown < 0 || d.Read < 0 || d.Ack < 0:
		return errors.New("its times are out of range")
	}
	return nil
}

func (c *Contact) Validate() error {
	switch {
	case !isForeignName(c.From) || !isForeignName(c.To) || !isLower(c.ToProjectUID, 20):
		return errors.New("one of its ends cannot be an agent")
	case !oneOf(c.Status, "pending", "approved", "blocked"):
		return errors.New("its status is invalid")
	case c.Created <= 0 || c.Updated <= 0 || c.Expires < 0:
		return errors.New("its times are out of range")
	}
	return nil
}

func (r *Reservation) Validate() error {
	_, err := pathpattern.Parse(r.PathPattern, pathpattern.Options{})
	switch {
	case !isLower(r.UID, 26):
		return errors.New("its uid cannot be one")
	case !isNumber(r.ID) || r.Ordinal < 1 || r.Ordinal > maxForeignOrdinal || r.Renewals < 0:
		return errors.New("one of its numbers is out of range")
	case !isForeignName(r.Agent):
		return errors.New("its agent's name cannot be one")
	case err != nil:
		return errors.New("its path_pattern cannot be one")
	case r.Created <= 0 || r.Expires <= 0 || r.Released < 0 || (r.Released == 0) != (r.ReleaseKind == nil):
		return errors.New("its times are out of range")
	case !oneOf(r.Source, "tool", "edit", "cli", "macro"):
		return errors.New("its source is invalid")
	case r.ReleaseKind != nil && !oneOf(*r.ReleaseKind, "owner", "force", "expired", "retired", "session_end"):
		return errors.New("its release_kind is invalid")
	}
	return nil
}

func (b *Blob) Validate() error {
	switch {
	case !isLower(b.SHA1, 40):
		return errors.New("its sha1 cannot be one")
	case b.Bytes < 0 || b.MediaType == "":
		return errors.New("its size or its media_type cannot be one")
	}
	return nil
}

// StrictJSON parses text, which must be one JSON value with only the fields of v. Errors do
// not repeat any of its values. The error for an unknown field is Unavailable with CodeFormat.
func StrictJSON(text []byte, v any) error {
	err := strictjson.Decode(text, v)
	if err == nil {
		return nil
	}
	if errors.Is(err, strictjson.ErrMore) {
		return errors.New("something follows its JSON value")
	}
	if name, ok := errors.AsType[strictjson.UnknownField](err); ok {
		return fault.Newf(fault.Unavailable, CodeFormat, "this cairn does not know its field %.60s", string(name))
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Field != "" {
		return fmt.Errorf("its field %.60s holds a JSON %s", t.Field, strings.Fields(t.Value)[0])
	}
	return errors.New("it is not the JSON of its kind")
}

// CodeFormat is the code of the error (Unavailable) for an archive that a newer cairn wrote.
const CodeFormat = "archive_newer"

const ArchiveFormat = 1

const MaxSubject = 200 // characters

// ThreadID returns the id of a thread as a message contains it, nil for a blank one (mail §6).
//
// Errors: INVALID_THREAD_ID.
func ThreadID(given string) (*string, error) {
	id := strings.TrimSpace(given)
	if id == "" {
		return nil, nil
	}
	if len(id) > 128 || !IsPlain(id) || strings.IndexByte("._-", id[0]) >= 0 {
		return nil, Errorf(CodeThreadID, "Invalid thread_id: '%s'.", Printable(strings.ToValidUTF8(Clip(given, MaxShown), ""))).
			With("provided", strings.ToValidUTF8(Clip(given, MaxShown), "")).With("examples", []string{"FEAT-123", "release.2026-03", "42"}).
			Hint("a thread_id has 1 to 128 of the characters A-Z a-z 0-9 . _ - and begins with a letter or digit")
	}
	return &id, nil
}

func TopicOf(given string) (*string, error) {
	topic := strings.TrimSpace(given)
	if topic == "" {
		return nil, nil
	}
	if len(topic) > maxTopic || !IsPlain(topic) {
		return nil, Errorf(CodeTopic, "Invalid topic: '%s'.", Printable(strings.ToValidUTF8(Clip(given, MaxShown), ""))).
			With("provided", strings.ToValidUTF8(Clip(given, MaxShown), "")).With("examples", []string{"build", "release-1.2", "db.schema"}).
			Hint("a topic has 1 to 64 of the characters A-Z a-z 0-9 . _ -")
	}
	return &topic, nil
}

// IsPlain reports whether a text consists of ASCII letters and digits, dots, underscores and
// dashes.
func IsPlain(text string) bool {
	for _, r := range text {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-') {
			return false
		}
	}
	return true
}

const maxTopic = 64

const MaxReason = 1000 // characters
