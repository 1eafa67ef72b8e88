package mail

import (
	"context"
	"encoding/json"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Kinds of the changes of mail, and the id of each (mail §3).
const (
	KindProject     = "mail.project"     // project_uid
	KindAgent       = "mail.agent"       // its name
	KindMessage     = "mail.message"     // its uid
	KindDelivery    = "mail.delivery"    // the message's uid, a slash, the recipient's name
	KindContact     = "mail.contact"     // From→Name@project_uid
	KindReservation = "mail.reservation" // its uid
	KindBlob        = "mail.blob"        // SHA-1 of the bytes, which are only in mail_blobs
)

// Document is the current state of an entity. It is the content of the entity's change, and
// the entity's files in the archive are rendered from it. It refers to other entities by uid
// or name.
type Document interface {
	// Kind and Key return the kind and the id of its change.
	Kind() string
	Key() string
	// StreamProject returns the project_uid of the project whose stream contains it.
	StreamProject() string
	// Validate checks the document by itself; see the function Validate.
	Validate() error
	// Apply updates the rows to match the document; seq is the number of its change.
	Apply(ctx context.Context, tx *store.Tx, seq int64) error
}

// Project is a project in mail: the document of KindProject, and project.json of the archive
// (mail §10.1).
type Project struct {
	ID           int64   `json:"id"`
	UID          string  `json:"project_uid"` // 20 hexadecimal digits
	Slug         string  `json:"slug"`
	HumanKey     string  `json:"human_key"` // the first known path, as long as it exists
	Created      Time    `json:"created_at"`
	IdentityMode string  `json:"identity_mode"`
	Remote       *string `json:"normalized_remote"`
	FoldsCase    bool    `json:"core_ignorecase"`
	ProductID    string  `json:"project_id"` // the id that all parts of cairn share
	Format       int     `json:"format"`     // 1

	// Columns of the row that all parts of cairn share.
	RowKey    int64  `json:"-"`
	root      string // "" if it has no path
	versioned bool   // it is a repository

	Imported bool `json:"-"` // from an export, with its product id already resolved
}

// IsRepository reports whether the project is a repository with all its checkouts. This
// includes a directory that became a repository.
func (p *Project) IsRepository() bool { return p.IdentityMode != ModeDir || p.versioned }

// Agent is the document of KindAgent, and profile.json of the archive.
type Agent struct {
	ID                int64   `json:"id"`
	Name              string  `json:"name"`
	Program           string  `json:"program"`
	Model             string  `json:"model"`
	TaskDescription   string  `json:"task_description"`
	Inception         Time    `json:"inception_ts"`
	AttachmentsPolicy string  `json:"attachments_policy"` // auto, inline, file, none
	ContactPolicy     string  `json:"contact_policy"`     // open, auto, contacts_only, block_all
	ProjectUID        string  `json:"project_uid"`
	Branch            *string `json:"branch"`
	Worktree          *string `json:"worktree"`
	TokenSHA256       *string `json:"token_sha256"` // hexadecimal
	Home              *string `json:"home"`         // project_uid/Name of the agent that this one mirrors
	Retired           Time    `json:"retired_ts"`

	// The following fields are derived and not part of the document.
	LastActive Time  `json:"-"`
	Received   int   `json:"-"`
	Unread     int   `json:"-"`
	AckDue     int   `json:"-"`
	ProjectID  int64 `json:"-"`
}

// Message is the document of KindMessage. It contains all recipients. The canonical file in
// the archive omits the recipients of blind copies.
type Message struct {
	ID          int64           `json:"id"`
	UID         string          `json:"uid"` // a ULID in lower case
	ProjectUID  string          `json:"project_uid"`
	From        string          `json:"from"`
	To          []string        `json:"to"`
	CC          []string        `json:"cc"`
	BCC         []string        `json:"bcc"`
	ThreadID    *string         `json:"thread_id"`
	ReplyTo     *int64          `json:"reply_to"`
	ReplyToUID  *string         `json:"reply_to_uid"`
	Topic       *string         `json:"topic"`
	Importance  string          `json:"importance"` // low, normal, high, urgent
	AckRequired bool            `json:"ack_required"`
	Created     Time            `json:"created"`
	Subject     string          `json:"subject"`
	Attachments json.RawMessage `json:"attachments"` // a JSON array
	Body        string          `json:"body_md"`
	Ordinal     int64           `json:"ordinal"`             // among the messages of its project and month, from 1
	ArchivePath string          `json:"archive_path"`        // of the canonical file
	Purged      Time            `json:"purged_ts,omitempty"` // when subject, body and attachments were deleted permanently
	Dropped     []string        `json:"dropped,omitempty"`   // SHA-1 of the attachments that the purge removed from the project

	SenderID, ProjectID int64 `json:"-"`
	Seq                 int64 `json:"-"`
}

// Delivery is the state of a message at one recipient: the document of KindDelivery, and the
// recipient's state file in the archive.
type Delivery struct {
	MessageID  int64   `json:"message_id"`
	UID        string  `json:"uid"` // of the message
	ProjectUID string  `json:"project_uid"`
	Agent      string  `json:"agent"`
	Recipient  string  `json:"kind"` // to, cc or bcc
	Shown      Time    `json:"shown_ts"`
	ShownVia   *string `json:"shown_via"`
	Read       Time    `json:"read_ts"`
	Ack        Time    `json:"ack_ts"`

	ArchivePath string `json:"archive_path"` // of the state file; derived from the message

	agentID int64
}

// Contact is a link from one agent to another: the document of KindContact. It is
// in the stream, and in the archive, of the requester's project.
type Contact struct {
	From           string `json:"from"`
	FromProjectUID string `json:"from_project_uid"`
	To             string `json:"to"`
	ToProjectUID   string `json:"to_project_uid"`
	Status         string `json:"status"` // pending, approved, blocked
	Reason         string `json:"reason"`
	Created        Time   `json:"created_ts"`
	Updated        Time   `json:"updated_ts"`
	Expires        Time   `json:"expires_ts"`
	ArchivePath    string `json:"archive_path"`

	FromID, ToID int64 `json:"-"`
}

// Reservation is the document of KindReservation.
type Reservation struct {
	ID          int64   `json:"id"`
	UID         string  `json:"uid"`
	ProjectUID  string  `json:"project_uid"`
	Agent       string  `json:"agent"`
	PathPattern string  `json:"path_pattern"`
	Exclusive   bool    `json:"exclusive"`
	Advisory    bool    `json:"advisory"`
	Source      string  `json:"source"` // tool, edit, cli, macro
	Session     *string `json:"session_id"`
	Reason      string  `json:"reason"`
	Created     Time    `json:"created_ts"`
	Expires     Time    `json:"expires_ts"`
	Renewals    int64   `json:"renewals"`
	Released    Time    `json:"released_ts"`
	ReleaseKind *string `json:"release_kind"`
	Ordinal     int64   `json:"ordinal"` // among the reservations of its project, from 1
	ArchivePath string  `json:"archive_path"`
	LitPrefix   string  `json:"lit_prefix"` // leading segments without wildcards, as returned by pathpattern

	AgentID, ProjectID int64 `json:"-"`
}

// Blob is the document of KindBlob.
type Blob struct {
	SHA1       string `json:"sha1"`
	ProjectUID string `json:"project_uid"`
	MediaType  string `json:"media_type"`
	Bytes      int64  `json:"bytes"`

	Data []byte `json:"-"`
}

// The kinds and ids of the documents, see Document.

func (*Project) Kind() string     { return KindProject }
func (*Agent) Kind() string       { return KindAgent }
func (*Message) Kind() string     { return KindMessage }
func (*Delivery) Kind() string    { return KindDelivery }
func (*Contact) Kind() string     { return KindContact }
func (*Reservation) Kind() string { return KindReservation }
func (*Blob) Kind() string        { return KindBlob }

func (p *Project) Key() string     { return p.UID }
func (a *Agent) Key() string       { return a.Name }
func (m *Message) Key() string     { return m.UID }
func (d *Delivery) Key() string    { return d.UID + "/" + d.Agent }
func (c *Contact) Key() string     { return c.From + "→" + c.To + "@" + c.ToProjectUID }
func (r *Reservation) Key() string { return r.UID }
func (b *Blob) Key() string        { return b.SHA1 }

func (p *Project) StreamProject() string     { return p.UID }
func (a *Agent) StreamProject() string       { return a.ProjectUID }
func (m *Message) StreamProject() string     { return m.ProjectUID }
func (d *Delivery) StreamProject() string    { return d.ProjectUID }
func (c *Contact) StreamProject() string     { return c.FromProjectUID }
func (r *Reservation) StreamProject() string { return r.ProjectUID }
func (b *Blob) StreamProject() string        { return b.ProjectUID }

// Decode parses the document of a change of mail.
//
// Errors: Invalid for an unknown kind, and for a text that is not a document of that kind.
func Decode(kind string, doc []byte) (Document, error) {
	var d Document
	switch kind {
	case KindProject:
		d = &Project{}
	case KindAgent:
		d = &Agent{}
	case KindMessage:
		d = &Message{}
	case KindDelivery:
		d = &Delivery{}
	case KindContact:
		d = &Contact{}
	case KindReservation:
		d = &Reservation{}
	case KindBlob:
		d = &Blob{}
	default:
		return nil, fault.Newf(fault.Invalid, CodeInvalid, "%.40q is not a kind of change of mail", kind)
	}
	if err := json.Unmarshal(doc, d); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, CodeInvalid, "a change's document is no "+kind+": "+err.Error())
	}
	return d, nil
}

// Stream returns the name of the stream of the change log that contains a project's mail.
func Stream(projectUID string) string { return "mail/" + projectUID }

// Put appends a document to the change log and updates the rows to match it. by is the session
// and the agent that made the change; either may be "".
func Put(ctx context.Context, tx *store.Tx, by Actor, productID string, d Document) error {
	doc, err := json.Marshal(d)
	if err != nil {
		return err
	}
	seq, err := tx.Append(ctx, store.Change{
		Project: productID, Stream: Stream(d.StreamProject()), Kind: d.Kind(), ID: d.Key(), Op: store.OpPut, Doc: doc,
		Session: by.Session, Agent: by.Agent,
	})
	if err != nil {
		return err
	}
	return d.Apply(ctx, tx, seq)
}

// Actor is the author of a change; either field may be "".
type Actor struct{ Session, Agent string }

// Attachment describes an attachment of a message (mail §6). For an image inside the body,
// only Type and MediaType are set.
type Attachment struct {
	Type         string `json:"type"` // inline or file
	MediaType    string `json:"media_type"`
	Bytes        *int64 `json:"bytes,omitempty"`
	SHA1         string `json:"sha1,omitempty"`
	Width        int    `json:"width,omitempty"` // of an image with a valid header
	Height       int    `json:"height,omitempty"`
	Data         string `json:"data_base64,omitempty"` // inline
	Path         string `json:"path,omitempty"`        // in the archive of the project
	OriginalPath string `json:"original_path,omitempty"`
}
