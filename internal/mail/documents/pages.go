package documents

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/mail"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

const (
	// The position of a message in its thread, by time, counted from 0.
	selectPosition = `SELECT count(*) FROM mail_messages WHERE project_id = ?1 AND thread_id = ?2 AND created_ts < ?3`
	selectPart     = mail.MessageColumns + `WHERE m.project_id = ? AND m.thread_id = ? ORDER BY m.created_ts, m.id LIMIT +? OFFSET ?`
	selectThreads  = `SELECT thread_id, messages FROM mail_threads WHERE project_id = ? AND thread_id > ? ORDER BY thread_id LIMIT 1`

	selectNewest = `SELECT uid FROM mail_reservations WHERE project_id = ? AND path_pattern = ? ORDER BY created_ts DESC, id DESC LIMIT 1`
	selectEldest = `SELECT min(ordinal) FROM mail_reservations WHERE project_id = ? AND path_pattern = ?`
)

// RenderedFiles are the files that result from changes of one project, and the text of their
// commit.
type RenderedFiles struct {
	Files   []File          // each path once, in its last state
	Gone    []DeletePattern // files to delete, unless they are among Files
	Ops     []string        // one line per operation, for the commit message
	Refused []follow.Refusal
}

// Render renders changes of one project's mail to files, oldest first (mail §10.1, §10.3). It
// skips changes of other streams and changes whose document was purged. A purge also deletes the
// files of the purged message. A change that cannot be rendered is refused without affecting the
// others.
func Render(ctx context.Context, tx *store.Tx, changes []store.Change) (RenderedFiles, error) {
	r := &renderer{tx: tx, at: map[string]int{}, threads: map[part]bool{}}
	for _, c := range changes {
		if !strings.HasPrefix(c.Stream, "mail/") || len(c.Doc) == 0 {
			continue
		}
		d, err := mail.Decode(c.Kind, c.Doc)
		if err == nil {
			err = r.add(ctx, d)
		}
		if err != nil {
			r.Refused = append(r.Refused, follow.Refusal{Seq: c.Seq, Err: err})
		}
	}
	for p := range r.threads {
		files, err := r.digest(ctx, p)
		if err != nil {
			return RenderedFiles{}, err
		}
		r.put(files...)
	}
	r.Ops = r.lines()
	return r.RenderedFiles, ctx.Err()
}

// renderer collects rendered files.
type renderer struct {
	RenderedFiles
	tx      *store.Tx
	at      map[string]int // path → index in Files
	threads map[part]bool

	ops        []string
	leases     []leases
	deliveries int
}

// part is one file of a thread's digest. n is counted from 0.
type part struct {
	project string
	thread  string
	n       int64
}

// leases summarizes the reservations of one agent.
type leases struct {
	agent, pattern string
	more           int
}

func (r *renderer) put(files ...File) {
	for _, f := range files {
		if i, ok := r.at[f.Path]; ok {
			r.Files[i] = f
			continue
		}
		r.at[f.Path] = len(r.Files)
		r.Files = append(r.Files, f)
	}
}

// add renders one document. An error refuses only the document's change.
func (r *renderer) add(ctx context.Context, d mail.Document) error {
	p, err := mail.ProjectOf(ctx, r.tx, d)
	if err != nil {
		return err
	}
	files, err := r.files(ctx, p, d)
	if err != nil {
		return err
	}
	r.put(files...)
	r.note(d)
	if m, ok := d.(*mail.Message); ok && m.Purged != 0 {
		r.Gone = append(r.Gone, gone(m)...)
	}
	if m, ok := d.(*mail.Message); ok && m.ThreadID != nil {
		var before int64
		if err := r.tx.Get(ctx, []any{&before}, selectPosition, p.ID, *m.ThreadID, m.Created); err != nil {
			return err
		}
		r.threads[part{p.UID, *m.ThreadID, before / perDigest}] = true
	}
	return nil
}

func (r *renderer) files(ctx context.Context, p *mail.Project, d mail.Document) ([]File, error) {
	switch d := d.(type) {
	case *mail.Project:
		return projectFiles(p)
	case *mail.Agent:
		return agentFiles(d)
	case *mail.Message:
		return messageFiles(d, p)
	case *mail.Delivery:
		return deliveryFiles(d)
	case *mail.Contact:
		return contactFiles(d)
	case *mail.Reservation:
		pattern, err := patternPath(ctx, r.tx, p.ID, d)
		if err != nil {
			return nil, err
		}
		return reservationFiles(d, p, pattern)
	case *mail.Blob:
		return blobFiles(ctx, d, r.tx)
	}
	return nil, fmt.Errorf("no page for %T", d)
}

// patternPath returns the path of a pattern's file. It returns "" if a newer reservation of the
// pattern exists, which then owns the file. The file stays in the folder of the pattern's oldest
// reservation.
func patternPath(ctx context.Context, tx *store.Tx, projectID int64, r *mail.Reservation) (string, error) {
	var newest string
	var eldest int64
	if found, err := mail.QueryOne(ctx, tx, []any{&newest}, selectNewest, projectID, r.PathPattern); err != nil || found && newest != r.UID {
		return "", err
	}
	if err := tx.Get(ctx, []any{&eldest}, selectEldest, projectID, r.PathPattern); err != nil {
		return "", err
	}
	sum := sha1.Sum([]byte(r.PathPattern))
	return "file_reservations/" + mail.BucketDir(eldest) + hex.EncodeToString(sum[:]) + ".json", nil
}

// manifest is the file with an attachment's metadata.
type manifest struct {
	SHA1      string `json:"sha1"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
}

// blobFiles returns the files with an attachment's bytes and metadata.
func blobFiles(ctx context.Context, b *mail.Blob, tx *store.Tx) ([]File, error) {
	var m manifest
	var data []byte
	found, err := mail.QueryOne(ctx, tx, []any{&m.MediaType, &m.Bytes, &data}, mail.SelectData, b.SHA1)
	if err != nil {
		return nil, err
	}
	if !found || len(b.SHA1) < 2 {
		return nil, fmt.Errorf("the attachment %s is not there", mail.Printable(b.SHA1))
	}
	m.SHA1 = b.SHA1
	about, err := jsonFile(m)
	return []File{{b.Path(m.MediaType), data}, {"attachments/_manifests/" + b.SHA1 + ".json", about}}, err
}

const (
	perDigest     = 50
	maxDigestBody = 1200
)

// digest renders one part of a thread as a human-readable file.
func (r *renderer) digest(ctx context.Context, p part) ([]File, error) {
	project, err := mail.ProjectByUID(ctx, r.tx, p.project)
	if err != nil || project == nil {
		return nil, err
	}
	var ordinal int64
	var path string
	if found, err := mail.QueryOne(ctx, r.tx, []any{&ordinal, &path}, mail.SelectThread, project.ID, p.thread); err != nil || !found {
		return nil, err
	}
	messages, err := mail.MessagesOf(ctx, r.tx, selectPart, project.ID, p.thread, perDigest, p.n*perDigest)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	if p.n > 0 {
		name := path[strings.LastIndexByte(path, '/')+1:]
		path = "messages/threads/_parts/" + mail.BucketDir(ordinal) + strings.TrimSuffix(name, ".md") + fmt.Sprintf("/%04d.md", p.n+1)
	}
	up := strings.Repeat("../", strings.Count(strings.TrimPrefix(path, "messages/"), "/"))
	return []File{{path, []byte(digestText(p.thread, up, messages))}}, nil
}

// digestText renders messages of a thread. Bodies are quoted, so no text in them can pass for
// another message.
func digestText(thread, up string, messages []*mail.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Thread %s\n", thread)
	for _, m := range messages {
		to := strings.Join(append(append([]string{}, m.To...), m.CC...), ", ")
		if to == "" {
			to = "(undisclosed)"
		}
		subject, file := m.Subject, m.ArchivePath
		switch {
		case m.Purged != 0:
			subject, file = "(purged)", tombstonePath(m.ID)
		case subject == "":
			subject = "(no subject)"
		}
		fmt.Fprintf(&b, "\n## %s — %s → %s\n\n[message %d](%s)\n\n### %s\n\n", m.Created, m.From, to, m.ID,
			up+strings.TrimPrefix(file, "messages/"), oneLine(subject))
		for line := range strings.Lines(excerpt(m.Body, maxDigestBody)) {
			b.WriteString(strings.TrimRight("> "+strings.TrimRight(line, "\r\n"), " ") + "\n")
		}
		b.WriteString("\n---\n")
	}
	return b.String()
}

// excerpt returns the beginning of a text, at most n characters.
func excerpt(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return strings.TrimRight(text[:i], " \r\n") + " …"
		}
	}
	return text
}

// note records a document for the commit message.
func (r *renderer) note(d mail.Document) {
	switch d := d.(type) {
	case *mail.Project:
		r.ops = append(r.ops, "project: "+d.Slug)
	case *mail.Agent:
		r.ops = append(r.ops, "agent: profile "+d.Name)
	case *mail.Message:
		if d.Purged != 0 {
			r.ops = append(r.ops, fmt.Sprintf("purge: message %d", d.ID))
			return
		}
		to := strings.Join(append(append([]string{}, d.To...), d.CC...), ", ")
		if to == "" {
			to = "(undisclosed)"
		}
		r.ops = append(r.ops, "mail: "+d.From+" -> "+to+" | "+d.Subject)
	case *mail.Contact:
		r.ops = append(r.ops, "contact: "+d.From+" -> "+d.To+" "+d.Status)
	case *mail.Delivery:
		r.deliveries++
	case *mail.Reservation:
		for i := range r.leases {
			if r.leases[i].agent == d.Agent {
				r.leases[i].more++
				return
			}
		}
		r.leases = append(r.leases, leases{agent: d.Agent, pattern: d.PathPattern})
	}
}

// lines returns the operations for the commit message, each on one line of at most 200 characters.
func (r *renderer) lines() []string {
	all := r.ops
	for _, l := range r.leases {
		line := "file_reservation: " + l.agent + " " + l.pattern
		if l.more > 0 {
			line = fmt.Sprintf("file_reservation: %s %s (+%d more)", l.agent, excerpt(l.pattern, 120), l.more)
		}
		all = append(all, line)
	}
	if r.deliveries > 0 {
		all = append(all, fmt.Sprintf("state: %d deliveries", r.deliveries))
	}
	for i := range all {
		all[i] = oneLine(all[i])
	}
	return all
}

const maxLine = 200

// oneLine returns a text on one line of at most 200 characters, without terminal control
// sequences.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	marks := 0
	text = strings.Map(func(r rune) rune { // limit stacked combining marks
		if !unicode.Is(unicode.M, r) {
			marks = 0
		} else if marks++; marks > 4 {
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > maxLine {
		text = excerpt(text, maxLine-2)
	}
	return text
}

// RenderAll calls put with the current files of every entity of a project, and with the thread
// digests. Each path occurs once, and the order is unspecified. Together they are mail's content
// of the project's folder in the archive.
func RenderAll(ctx context.Context, tx *store.Tx, projectUID string, put func(d mail.Document, files []File) error) error {
	p, err := mail.ProjectByUID(ctx, tx, projectUID)
	if err != nil || p == nil {
		return err
	}
	r := &renderer{tx: tx, at: map[string]int{}, threads: map[part]bool{}}
	err = eachDocument(ctx, tx, p, func(d mail.Document) error {
		files, err := r.files(ctx, p, d)
		if m, ok := d.(*mail.Message); ok {
			files = files[:len(files)-len(m.BCC)] // the state files of blind copies are rendered with their deliveries
		}
		if err != nil || len(files) == 0 {
			return err
		}
		return put(d, files)
	})
	if err != nil {
		return err
	}
	for thread := ""; ; {
		var messages int64
		found, err := mail.QueryOne(ctx, tx, []any{&thread, &messages}, selectThreads, p.ID, thread)
		if err != nil || !found {
			return err
		}
		for n := range (messages + perDigest - 1) / perDigest {
			files, err := r.digest(ctx, part{p.UID, thread, n})
			if err == nil && len(files) > 0 {
				err = put(nil, files)
			}
			if err != nil {
				return err
			}
		}
	}
}
