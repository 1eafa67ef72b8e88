package documents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/mail"
)

// File is a file of the archive: its path below the project's folder, with slashes, and its
// content.
type File struct {
	Path    string
	Content []byte
}

// head is the front matter of a message's file (mail §10.1). The fields are in the order of the
// file.
type head struct {
	ID          int64           `json:"id"`
	UID         string          `json:"uid"`
	Project     string          `json:"project"` // human_key
	ProjectSlug string          `json:"project_slug"`
	From        string          `json:"from"`
	To          []string        `json:"to"`
	CC          []string        `json:"cc"`
	BCC         []string        `json:"bcc"` // always empty: each blind copy has its own state file
	ThreadID    *string         `json:"thread_id"`
	ReplyTo     *int64          `json:"reply_to"`
	Topic       *string         `json:"topic"`
	Importance  string          `json:"importance"`
	AckRequired bool            `json:"ack_required"`
	Created     mail.Time       `json:"created"`
	Subject     string          `json:"subject"`
	Attachments json.RawMessage `json:"attachments"`
}

const (
	headBegin = "---json\n"
	headEnd   = "\n---\n\n"
)

// page returns the file of a message: front matter in JSON, an empty line, and the body byte for
// byte.
func page(m *mail.Message, p *mail.Project) ([]byte, error) {
	front, err := pretty(head{
		ID: m.ID, UID: m.UID, Project: p.HumanKey, ProjectSlug: p.Slug, From: m.From, To: mail.NonNil(m.To), CC: mail.NonNil(m.CC), BCC: []string{},
		ThreadID: m.ThreadID, ReplyTo: m.ReplyTo, Topic: m.Topic, Importance: m.Importance, AckRequired: m.AckRequired, Created: m.Created,
		Subject: m.Subject, Attachments: m.AttachmentsJSON(),
	})
	if err != nil {
		return nil, err
	}
	return []byte(headBegin + string(front) + headEnd + m.Body), nil
}

// parseMessage parses the file of a message at its canonical path. It does not set the project's
// uid, the blind copies and the uid of the replied-to message; other files contain them. The
// ordinal is only the first of its folder.
func parseMessage(path string, content []byte) (*mail.Message, error) {
	rest, ok := bytes.CutPrefix(content, []byte(headBegin))
	if !ok {
		return nil, fmt.Errorf("it does not begin with %q", strings.TrimSpace(headBegin))
	}
	// The front matter contains no line of three dashes, because its lines are JSON.
	front, body, ok := bytes.Cut(rest, []byte(headEnd))
	if !ok {
		return nil, fmt.Errorf("its front matter does not end")
	}
	var h head
	if err := json.Unmarshal(front, &h); err != nil {
		return nil, fmt.Errorf("its front matter is not JSON: %w", err)
	}
	if h.ID < 1 || h.UID == "" || h.From == "" || h.Created == 0 || !utf8.Valid(body) {
		return nil, fmt.Errorf("its front matter lacks an id, a uid, a sender or a time, or its body is not text")
	}
	return &mail.Message{
		ID: h.ID, UID: h.UID, From: h.From, To: mail.NonNil(h.To), CC: mail.NonNil(h.CC), BCC: []string{}, ThreadID: h.ThreadID, ReplyTo: h.ReplyTo, Topic: h.Topic,
		Importance: h.Importance, AckRequired: h.AckRequired, Created: h.Created, Subject: h.Subject, Attachments: compact(h.Attachments), Body: string(body),
		ArchivePath: path,
	}, nil
}

// compact returns JSON without insignificant whitespace, as rows store it.
func compact(text json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(text) == 0 || json.Compact(&b, text) != nil {
		return json.RawMessage("[]")
	}
	return b.Bytes()
}

// pretty returns human-readable JSON: indented by two spaces, with <, > and & unescaped, without a
// final newline.
func pretty(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// jsonFile returns a document as the content of a JSON file.
func jsonFile(v any) ([]byte, error) {
	text, err := pretty(v)
	return append(text, '\n'), err
}

// messageFiles returns all files of a message. They are the canonical file, copies in the sender's
// outbox and in each recipient's inbox, and a state file per blind copy. Only that state file
// names the recipient of a blind copy. Thread digests combine several messages: see digest. For a
// purged message a tombstone replaces the canonical file and the copies.
func messageFiles(m *mail.Message, p *mail.Project) ([]File, error) {
	var out []File
	if m.Purged != 0 {
		left, err := tombstoneFile(m, p)
		if err != nil {
			return nil, err
		}
		out = append(out, left)
	} else {
		text, err := page(m, p)
		if err != nil {
			return nil, err
		}
		out = append(out, File{m.ArchivePath, text}, File{mail.CopyPath(m.From, "outbox", m.ArchivePath), text})
		for _, name := range slices.Concat(m.To, m.CC, m.BCC) {
			out = append(out, File{mail.CopyPath(name, "inbox", m.ArchivePath), text})
		}
	}
	for _, name := range m.BCC {
		d := mail.Delivery{MessageID: m.ID, UID: m.UID, Agent: name, Recipient: "bcc", ArchivePath: mail.StatePath(name, m.Created, m.ID, m.Ordinal)}
		state, err := deliveryFiles(&d)
		if err != nil {
			return nil, err
		}
		out = append(out, state...)
	}
	return out, nil
}

// state is the file of a delivery.
type state struct {
	MessageID int64     `json:"message_id"`
	UID       string    `json:"uid"`
	Agent     string    `json:"agent"`
	Kind      string    `json:"kind"`
	Shown     mail.Time `json:"shown_ts"`
	ShownVia  *string   `json:"shown_via"`
	Read      mail.Time `json:"read_ts"`
	Ack       mail.Time `json:"ack_ts"`
}

// deliveryFiles returns the state file of a delivery, or nil if the delivery has no state.
func deliveryFiles(d *mail.Delivery) ([]File, error) {
	if d.Recipient != "bcc" && d.Shown == 0 && d.Read == 0 && d.Ack == 0 {
		return nil, nil
	}
	text, err := jsonFile(state{d.MessageID, d.UID, d.Agent, d.Recipient, d.Shown, d.ShownVia, d.Read, d.Ack})
	return []File{{d.ArchivePath, text}}, err
}

func projectFiles(p *mail.Project) ([]File, error) {
	text, err := jsonFile(p)
	return []File{{"project.json", text}}, err
}

func agentFiles(a *mail.Agent) ([]File, error) {
	text, err := jsonFile(a)
	return []File{{"agents/" + a.Name + "/profile.json", text}}, err
}

// link is the file of a contact: its document without the path.
type link struct {
	From           string    `json:"from"`
	FromProjectUID string    `json:"from_project_uid"`
	To             string    `json:"to"`
	ToProjectUID   string    `json:"to_project_uid"`
	Status         string    `json:"status"`
	Reason         string    `json:"reason"`
	Created        mail.Time `json:"created_ts"`
	Updated        mail.Time `json:"updated_ts"`
	Expires        mail.Time `json:"expires_ts"`
}

func contactFiles(c *mail.Contact) ([]File, error) {
	text, err := jsonFile(link{c.From, c.FromProjectUID, c.To, c.ToProjectUID, c.Status, c.Reason, c.Created, c.Updated, c.Expires})
	return []File{{c.ArchivePath, text}}, err
}

// lease is the file of a reservation.
type lease struct {
	ID          int64     `json:"id"`
	UID         string    `json:"uid"`
	Agent       string    `json:"agent"`
	Project     string    `json:"project"` // human_key
	PathPattern string    `json:"path_pattern"`
	Exclusive   bool      `json:"exclusive"`
	Advisory    bool      `json:"advisory"`
	Source      string    `json:"source"`
	Reason      string    `json:"reason"`
	Created     mail.Time `json:"created_ts"`
	Expires     mail.Time `json:"expires_ts"`
	Renewals    int64     `json:"renewals"`
	Released    mail.Time `json:"released_ts"`
	ReleaseKind *string   `json:"release_kind"`
}

// reservationFiles returns the file of a reservation. For the newest reservation of a pattern,
// pattern is the path of the pattern's file, which is returned too. It is "" for older ones.
func reservationFiles(r *mail.Reservation, p *mail.Project, pattern string) ([]File, error) {
	text, err := jsonFile(lease{
		r.ID, r.UID, r.Agent, p.HumanKey, r.PathPattern, r.Exclusive, r.Advisory, r.Source, r.Reason, r.Created, r.Expires, r.Renewals, r.Released, r.ReleaseKind,
	})
	out := []File{{r.ArchivePath, text}}
	if pattern != "" {
		out = append(out, File{pattern, text})
	}
	return out, err
}

// parse parses the file of an entity, by its path in the archive. It returns nil without an error
// for copies, digests and files that are not mail's (see SourceOf). It does so for attachments
// too, because a second file contains their bytes. projectUID is the uid in the archive's
// project.json.
func parse(path string, content []byte, projectUID string) (mail.Document, error) {
	switch kind, _, _ := SourceOf(path); kind {
	case mail.KindProject:
		p := &mail.Project{}
		return p, strictly(content, p)
	case mail.KindAgent:
		a := &mail.Agent{}
		return a, strictly(content, a)
	case mail.KindDelivery:
		var s state
		err := strictly(content, &s)
		return &mail.Delivery{
			MessageID: s.MessageID, UID: s.UID, ProjectUID: projectUID, Agent: s.Agent, Recipient: s.Kind,
			Shown: s.Shown, ShownVia: s.ShownVia, Read: s.Read, Ack: s.Ack, ArchivePath: path,
		}, err
	case mail.KindMessage:
		if strings.HasPrefix(path, tombstones) {
			return parseTombstone(content, projectUID)
		}
		m, err := parseMessage(path, content)
		if err != nil {
			return nil, err
		}
		m.ProjectUID = projectUID
		return m, nil
	case mail.KindContact:
		var l link
		err := strictly(content, &l)
		return &mail.Contact{From: l.From, FromProjectUID: l.FromProjectUID, To: l.To, ToProjectUID: l.ToProjectUID, Status: l.Status, Reason: l.Reason, Created: l.Created, Updated: l.Updated, Expires: l.Expires, ArchivePath: path, FromID: 0, ToID: 0}, err
	case mail.KindReservation:
		var l lease
		err := strictly(content, &l)
		return &mail.Reservation{
			ID: l.ID, UID: l.UID, ProjectUID: projectUID, Agent: l.Agent, PathPattern: l.PathPattern, Exclusive: l.Exclusive, Advisory: l.Advisory,
			Source: l.Source, Reason: l.Reason, Created: l.Created, Expires: l.Expires, Renewals: l.Renewals, Released: l.Released,
			ReleaseKind: l.ReleaseKind, ArchivePath: path,
		}, err
	}
	return nil, nil
}

// strictly parses a JSON file and rejects trailing data.
func strictly(content []byte, v any) error {
	if err := json.Unmarshal(content, v); err != nil {
		return fmt.Errorf("it is not JSON of its kind: %w", err)
	}
	return nil
}
