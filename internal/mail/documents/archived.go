package documents

import (
	"context"
	"database/sql"
	"path"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/store"
)

// StreamPrefix is the prefix of mail's stream names, see Stream.
const StreamPrefix = "mail/"

const (
	selectProjectIDs = `SELECT p.id FROM mail_projects m JOIN projects p ON p.key = m.project_key ORDER BY m.id`
	selectUIDByID    = `SELECT m.uid FROM mail_projects m JOIN projects p ON p.key = m.project_key WHERE p.id = ?`
	selectNewestOnes = `SELECT p.id, CASE WHEN m.attachments LIKE '{%' THEN '` + tombstones + `' || m.id || '.json' ELSE m.archive_path END, m.seq FROM mail_messages m
JOIN mail_projects q ON q.id = m.project_id JOIN projects p ON p.key = q.project_key ORDER BY m.created_ts DESC LIMIT +?`
)

// Projects returns the ids, shared by all parts of cairn, of the projects with mail.
func Projects(ctx context.Context, tx *store.Tx) (ids []string, err error) {
	return tx.Texts(ctx, selectProjectIDs)
}

// UIDOf returns the project_uid of the project with a shared id, or "" if it has no mail.
func UIDOf(ctx context.Context, tx *store.Tx, id string) (uid string, err error) {
	_, err = mail.QueryOne(ctx, tx, []any{&uid}, selectUIDByID, id)
	return uid, err
}

// FileRef locates the file of a message in the archive.
type FileRef struct {
	Project string // the project id that all parts of cairn share
	Path    string // of the canonical file
	Seq     int64  // of the message's change
}

// Newest returns the n newest messages, newest first.
func Newest(ctx context.Context, tx *store.Tx, n int) (out []FileRef, err error) {
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var p FileRef
		err := r.Scan(&p.Project, &p.Path, &p.Seq)
		out = append(out, p)
		return err
	}, selectNewestOnes, n)
	return out, err
}

// SourceOf classifies a path in a project's archive. ours reports whether the path is in one of
// mail's folders. If an entity is read from this file, kind is the entity's kind. id is then the
// part of its id that the path contains: the number of a message or reservation, for example. kind
// and id are "" for copies, digests and other files.
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
