package documents

import (
	"context"
	"database/sql"
	"path"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/store"
)

// StreamPrefix is how the streams of mail begin, see Stream.
const StreamPrefix = "mail/"

const (
	selectProjectIDs = `SELECT p.id FROM mail_projects m JOIN projects p ON p.key = m.project_key ORDER BY m.id`
	selectUIDByID    = `SELECT m.uid FROM mail_projects m JOIN projects p ON p.key = m.project_key WHERE p.id = ?`
	selectNewestOnes = `SELECT p.id, CASE WHEN m.attachments LIKE '{%' THEN '` + tombstones + `' || m.id || '.json' ELSE m.archive_path END, m.seq FROM mail_messages m
JOIN mail_projects q ON q.id = m.project_id JOIN projects p ON p.key = q.project_key ORDER BY m.created_ts DESC LIMIT +?`
)

// Projects are the ids, as all parts know them, of the projects that have mail.
func Projects(ctx context.Context, tx *store.Tx) (ids []string, err error) {
	return tx.Texts(ctx, selectProjectIDs)
}

// UIDOf is the project_uid of a project that all parts know by id, "" if it has no
// mail.
func UIDOf(ctx context.Context, tx *store.Tx, id string) (uid string, err error) {
	_, err = mail.QueryOne(ctx, tx, []any{&uid}, selectUIDByID, id)
	return uid, err
}

// FileRef is where the file of a message lies.
type FileRef struct {
	Project string // the id that all parts know
	Path    string // of the canonical file
	Seq     int64  // of the message's change
}

// Newest are the n newest messages, newest first.
func Newest(ctx context.Context, tx *store.Tx, n int) (out []FileRef, err error) {
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var p FileRef
		err := r.Scan(&p.Project, &p.Path, &p.Seq)
		out = append(out, p)
		return err
	}, selectNewestOnes, n)
	return out, err
}

// SourceOf tells of a path in a project's archive whether files of mail lie there,
// and of which entity it is the file that the
// entity is read from: its kind and the part of its id that the path contains, which is a
// message's or reservation's number; kind and id "" for copies, digests and other files.
func SourceOf(name string) (kind, id string, ours bool) {
	folder, rest, _ := strings.Cut(name, "/")
	base := strings.TrimSuffix(path.Base(name), path.Ext(name))
	switch {
	case name == "project.json":
		return mail.KindProject, name, true
	case folder == "agents" && strings.HasSuffix(rest, "/profile.json"):
		return mail.KindAgent, strings.TrimSuffix(rest, "/profile.json"), true
	case folder == "agents" && strings.Contains(rest, "/state/"):
		agent, _, _ := strings.Cut(rest, "/")
		return mail.KindDelivery, agent + "/" + base, true
	case strings.HasPrefix(name, tombstones):
		return mail.KindMessage, base, true
	case folder == "messages" && !strings.HasPrefix(rest, "threads/"):
		return mail.KindMessage, base[strings.LastIndexByte(base, '_')+1:], true
	case folder == "contacts":
		return mail.KindContact, base, true
	case folder == "file_reservations" && strings.HasPrefix(path.Base(name), "id-"):
		return mail.KindReservation, strings.TrimPrefix(base, "id-"), true
	case folder == "attachments" && strings.HasPrefix(rest, "_manifests/"):
		return mail.KindBlob, base, true
	case folder == "agents", folder == "messages", folder == "file_reservations", folder == "attachments":
		return "", "", true
	}
	return "", "", false
}
