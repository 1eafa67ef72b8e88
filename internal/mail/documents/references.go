package documents

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"hash"
	"strings"
	"time"

	"cairn/internal/mail"
)

// Check parses the document and validates it on its own, with a human-readable error; nil for a
// valid one. A document of a newer cairn is Unavailable.
func (e *Exported) Check() error {
	d, err := mail.Decode(e.Kind, []byte("{}"))
	if err != nil {
		return err
	}
	if len(e.Doc) == 0 || e.Doc[0] != '{' {
		return errors.New("its doc is not a JSON object")
	}
	if err := mail.StrictJSON(e.Doc, d); err != nil {
		return err
	}
	if _, ok := d.(*mail.Blob); !ok && (e.From != 0 || e.Data != nil) {
		return errors.New("only attachments have data")
	}
	e.document = d
	return mail.Validate(d)
}

// References validates the mail of an export line by line: references, duplicates and complete
// attachments. The zero value is not usable. It must be used by one goroutine only.
type References struct {
	now      mail.Time
	projects map[string]bool
	products map[string]bool
	agents   map[entityKey]bool
	messages map[string]*refMessage // by uid
	contacts map[string]bool
	leases   map[string]bool
	stamped  map[string]bool // deliveries
	blobs    map[string]bool // attachments whose bytes were read
	listed   map[entityKey]bool
	numbers  map[numberKey]bool
	highest  map[string]int64 // by the names in RaiseNumbers
	current  blobState
}

// entityKey identifies an entity of a project.
type entityKey struct{ uid, name string }

type numberKey struct {
	kind   string
	number int64
}

type refMessage struct {
	uid    string // of the project
	number int64
	kinds  map[string]string // recipient in lower case → to, cc or bcc
}

// blobState is the attachment whose bytes are being read.
type blobState struct {
	about mail.Blob
	sum   hash.Hash
	read  int64
}

// NewReferences returns a validator for one export. now is the time of this machine's clock.
func NewReferences(now time.Time) *References {
	return &References{
		now: mail.TimeOf(now), projects: map[string]bool{}, products: map[string]bool{}, agents: map[entityKey]bool{},
		messages: map[string]*refMessage{}, contacts: map[string]bool{}, leases: map[string]bool{}, stamped: map[string]bool{},
		blobs: map[string]bool{}, listed: map[entityKey]bool{}, numbers: map[numberKey]bool{}, highest: map[string]int64{},
	}
}

// Highest returns the highest numbers in the export, by the names in RaiseNumbers.
func (f *References) Highest() map[string]int64 { return f.highest }

const (
	noProject = "it refers to a project of mail that the file does not have before it"
	noAgent   = "it refers to an agent that the file does not have before it"
	twice     = "it stands here for the second time"
	torn      = "an attachment before it is not whole"
)

// maxAhead is how far a message's time may be ahead of this machine's clock. Every later message
// gets a later time.
const maxAhead = mail.Time(48 * time.Hour)

// Check validates a line at its position. It returns what is wrong, or "". The line must have
// passed Exported.Check. hasProject reports whether the file contains the project itself.
func (f *References) Check(e *Exported, hasProject func(id string) bool) string {
	if b, ok := e.document.(*mail.Blob); ok {
		return f.blob(b, e)
	}
	if why := f.End(); why != "" {
		return why
	}
	if why := f.number(e.document); why != "" {
		return why
	}
	if p, ok := e.document.(*mail.Project); ok {
		switch {
		case !hasProject(p.ProductID):
			return "it refers to a project that the file does not have"
		case f.projects[p.UID] || f.products[p.ProductID]:
			return twice
		}
		f.projects[p.UID], f.products[p.ProductID] = true, true
		return ""
	}
	if !f.projects[e.document.StreamProject()] {
		return noProject
	}
	switch d := e.document.(type) {
	case *mail.Agent:
		return f.once(f.agents, entityKey{d.ProjectUID, strings.ToLower(d.Name)})
	case *mail.Message:
		return f.message(d)
	case *mail.Delivery:
		return f.delivery(d)
	case *mail.Contact:
		return f.contact(d)
	case *mail.Reservation:
		if !f.hasAgent(d.ProjectUID, d.Agent) {
			return noAgent
		}
		if f.leases[d.UID] {
			return twice
		}
		f.leases[d.UID] = true
	}
	return ""
}

// End validates the end of the mail lines. It returns what is missing, or "".
func (f *References) End() string {
	if f.current.sum != nil {
		return torn
	}
	return ""
}

func (f *References) once(set map[entityKey]bool, key entityKey) string {
	if set[key] {
		return twice
	}
	set[key] = true
	return ""
}

func (f *References) hasAgent(uid, name string) bool {
	return f.agents[entityKey{uid, strings.ToLower(name)}]
}

// number checks that no other entity of the kind has the same number.
func (f *References) number(d mail.Document) string {
	id := numberOf(d)
	if id == nil {
		return ""
	}
	key := numberKey{d.Kind(), *id}
	if f.numbers[key] {
		return "another line of its kind has its number"
	}
	f.numbers[key] = true
	for name, table := range numberedTables() {
		if table == numbered(d) {
			f.highest[name] = max(f.highest[name], *id)
		}
	}
	return ""
}

func (f *References) message(m *mail.Message) string {
	if m.Created > f.now+maxAhead {
		return "its time is in the future"
	}
	if f.messages[m.UID] != nil {
		return twice
	}
	if !f.hasAgent(m.ProjectUID, m.From) {
		return noAgent
	}
	r := &refMessage{uid: m.ProjectUID, number: m.ID, kinds: map[string]string{}}
	for kind, names := range map[string][]string{"to": m.To, "cc": m.CC, "bcc": m.BCC} {
		for _, name := range names {
			if !f.hasAgent(m.ProjectUID, name) {
				return noAgent
			}
			r.kinds[strings.ToLower(name)] = kind
		}
	}
	if m.ReplyToUID != nil {
		if of := f.messages[*m.ReplyToUID]; of == nil || m.ReplyTo == nil || of.number != *m.ReplyTo {
			return "it replies to a message that the file does not have before it"
		}
	} else if m.ReplyTo != nil {
		return "it replies to a message without naming its uid"
	}
	f.messages[m.UID] = r
	return ""
}

func (f *References) delivery(d *mail.Delivery) string {
	m := f.messages[d.UID]
	switch {
	case m == nil || m.uid != d.ProjectUID || m.number != d.MessageID:
		return "it refers to a message that the file does not have before it"
	case m.kinds[strings.ToLower(d.Agent)] != d.Recipient:
		return "its message has no such recipient"
	case f.stamped[strings.ToLower(d.Key())]:
		return twice
	}
	f.stamped[strings.ToLower(d.Key())] = true
	return ""
}

func (f *References) contact(c *mail.Contact) string {
	key := strings.ToLower(c.FromProjectUID + "/" + c.Key())
	switch {
	case !f.projects[c.ToProjectUID]:
		return noProject
	case !f.hasAgent(c.FromProjectUID, c.From) || !f.hasAgent(c.ToProjectUID, c.To):
		return noAgent
	case f.contacts[key]:
		return twice
	}
	f.contacts[key] = true
	return ""
}

// goesOn reports whether a line contains the next bytes of the attachment.
func (s *blobState) goesOn(b *mail.Blob, e *Exported) bool {
	same := s.about.SHA1 == b.SHA1 && s.about.ProjectUID == b.ProjectUID && s.about.Bytes == b.Bytes
	return s.sum != nil && same && s.read == e.From && len(e.Data) > 0
}

// blob checks the lines that contain the bytes of an attachment.
func (f *References) blob(b *mail.Blob, e *Exported) string {
	s := &f.current
	switch {
	case !f.projects[b.ProjectUID]:
		return noProject
	case s.sum == nil && e.From == 0:
		if why := f.once(f.listed, entityKey{b.ProjectUID, b.SHA1}); why != "" {
			return why
		}
		if f.blobs[b.SHA1] && e.Data == nil {
			return ""
		}
		*s = blobState{about: *b, sum: sha1.New()} // SHA-1 names the bytes and is not used for security
	case !s.goesOn(b, e):
		return torn
	}
	s.sum.Write(e.Data)
	if s.read += int64(len(e.Data)); s.read < b.Bytes && len(e.Data) > 0 {
		return ""
	}
	if s.read != b.Bytes || hex.EncodeToString(s.sum.Sum(nil)) != b.SHA1 {
		return "the bytes of an attachment are not those that its sha1 says"
	}
	f.blobs[b.SHA1], s.sum = true, nil
	return ""
}
