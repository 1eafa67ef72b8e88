package cairn

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"cairn/internal/archive"
	"cairn/internal/project"
	"cairn/internal/store"
)

// archiveIdentity is the file in an archive's folder that identifies its project. The name
// of the folder is the project's id in one store, and means nothing in another store.
type archiveIdentity struct {
	ProjectID string   `json:"project_id"`
	Name      string   `json:"name"`
	UID       string   `json:"project_uid"`
	Keys      []string `json:"keys"` // strongest first; never empty
	OriginURL string   `json:"origin_url,omitempty"`
}

// identityOf returns the identity of a project for its archive, nil for a project
// without a key.
func identityOf(ctx context.Context, tx *store.Tx, id string) ([]byte, error) {
	q, ok, err := project.Find(ctx, tx, id)
	if err != nil || !ok {
		return nil, err
	}
	keys, err := project.KeysOf(ctx, tx, q)
	if err != nil {
		return nil, err
	}
	out := archiveIdentity{ProjectID: q.ID, Name: q.Name, UID: keys[0].UID, OriginURL: q.OriginURL}
	for _, key := range keys {
		if !strings.HasPrefix(key.Key, "name:") {
			out.Keys = append(out.Keys, key.Key)
		}
	}
	if len(out.Keys) == 0 {
		return nil, nil
	}
	text, err := json.MarshalIndent(out, "", "  ")
	return append(text, '\n'), err
}

// foreignArchiveID returns the id under which the archive with the identity old must be
// set aside, because the identity now has none of its keys. It returns "" if they share a
// key.
func foreignArchiveID(old, now []byte) string {
	var a, b archiveIdentity
	if json.Unmarshal(old, &a) != nil || json.Unmarshal(now, &b) != nil || len(a.UID) < 6 || len(a.Keys) == 0 {
		return ""
	}
	if slices.ContainsFunc(a.Keys, func(key string) bool { return slices.Contains(b.Keys, key) }) {
		return ""
	}
	return idWithSuffix(a.ProjectID, a.UID)
}

// idWithSuffix returns the id of a project whose own id is taken by another project.
func idWithSuffix(id, uid string) string { return id[:min(len(id), 57)] + "-" + uid[:6] }

// projectOf returns the project of an archive's folder: the project with one of the
// archive's keys, else the project with the folder's name. If that is another repository,
// it is a new project with a suffix. A missing project is created with its keys, except in
// a dry run.
func (r *reindexRun) projectOf(ctx context.Context, f archive.Archived) (id string, err error) {
	var a archiveIdentity
	id = archive.ProjectOf(f.Name)
	if json.Unmarshal(f.Identity, &a) != nil || len(a.Keys) == 0 || len(a.UID) < 6 {
		return id, nil
	}
	err = r.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, key := range a.Keys {
			if q, ok, err := project.FindKey(ctx, tx, key); ok || err != nil {
				id = q.ID
				return err
			}
		}
		q, ok, err := project.Find(ctx, tx, id)
		if err != nil || !ok {
			return err
		}
		keys, err := project.KeysOf(ctx, tx, q)
		if err == nil && !slices.ContainsFunc(keys, func(k project.KeyUID) bool { return strings.HasPrefix(k.Key, "name:") }) {
			id = idWithSuffix(id, a.UID)
		}
		return err
	})
	if err != nil || r.args.DryRun {
		return id, err
	}
	err = r.store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		got, err := project.Import(ctx, tx, project.Exported{
			ID: id, Name: cmp.Or(a.Name, id), OriginURL: a.OriginURL, Keys: a.Keys, CreatedAt: tx.Now().Unix(), CreatedNS: tx.Now().UnixNano(),
			ChangedNS: tx.Now().UnixNano(),
		})
		if err == nil {
			id = got.Project.ID
		}
		return err
	})
	if err == nil && archive.FolderOf(id) != f.Name {
		r.moved[f.Name] = id
	}
	return id, err
}
