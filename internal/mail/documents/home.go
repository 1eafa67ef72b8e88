package documents

import (
	"context"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// These functions map the projects of an archive or an export to those of this store (amendments
// §C.3). A project_uid or the remote's key decides. A slug or a product id never joins two
// projects.

// homeOf returns this store's mail project for a project from elsewhere, or nil. Its project_uid
// may differ.
func homeOf(ctx context.Context, tx *store.Tx, p *mail.Project) (*mail.Project, error) {
	here, err := mail.ProjectByUID(ctx, tx, p.UID)
	if here != nil || err != nil {
		return here, err
	}
	row, ok, err := sharedRow(ctx, p, tx)
	if err != nil || !ok {
		return nil, err
	}
	return mail.QueryProject(ctx, tx, mail.SelectProjectByKey, row.Key)
}

// sharedRow returns this store's row for a project from elsewhere: the row with its uid or its
// remote's key. Otherwise it returns the row with its product id, unless their places differ. For
// an export the product id alone decides, because project.Import has compared the keys. ok is
// false if there is no such row.
func sharedRow(ctx context.Context, p *mail.Project, tx *store.Tx) (row project.Project, ok bool, err error) {
	if p.Imported {
		return project.Find(ctx, tx, p.ProductID)
	}
	for _, key := range [...]string{p.UID, remoteKey(p)} {
		if key == "" {
			continue
		}
		if row, ok, err = project.FindKey(ctx, tx, key); ok || err != nil {
			return row, ok, err
		}
	}
	row, ok, err = project.Find(ctx, tx, p.ProductID)
	if err != nil || !ok {
		return row, false, err
	}
	here, err := mail.QueryProject(ctx, tx, mail.SelectProjectByKey, row.Key)
	if err != nil {
		return row, false, err
	}
	return row, fits(p, row, here), nil
}

// remoteKey returns the key of the project's remote, or "". A directory project has none: its
// remote is that of the surrounding repository.
func remoteKey(p *mail.Project) string {
	if p.IdentityMode == mail.ModeDir {
		return ""
	}
	return mail.Deref(p.Remote)
}

// fits reports whether a project from elsewhere may have the row with its product id. Both must
// have the same remote or, if one has no remote, the same path. A row without a path and without
// mail fits if neither has a remote. here is the row's mail, or nil.
func fits(p *mail.Project, row project.Project, here *mail.Project) bool {
	mine, its, path := remoteKey(p), project.NormalizeRemote(row.OriginURL, row.Root), row.Root
	if strings.HasPrefix(its, mail.LocalRemote) {
		its = ""
	}
	if here != nil && path == "" {
		its, path = remoteKey(here), here.HumanKey
	}
	switch {
	case mine != "" && its != "":
		return strings.EqualFold(mine, its) // older versions stored it in lower case
	case path == "":
		return mine == "" && its == ""
	}
	return path == p.HumanKey
}

// resolveProject gives a project from elsewhere a shared row that has no mail yet, and a free
// slug. A product id that belongs to another project gets a suffix.
func resolveProject(ctx context.Context, p *mail.Project, tx *store.Tx) error {
	row, ok, err := sharedRow(ctx, p, tx)
	if err != nil {
		return err
	}
	if ok {
		var taken bool
		if err := tx.Get(ctx, []any{&taken}, mail.SelectHasMail, row.Key); err != nil {
			return err
		}
		ok = !taken
	}
	if ok {
		p.ProductID = row.ID
	} else if err := createRow(ctx, p, tx); err != nil {
		return err
	}
	p.Slug, err = mail.FreeSlug(ctx, tx, p.Slug, p.HumanKey, p.UID)
	return err
}

// createRow creates the shared row of a project from elsewhere, with the key of its remote. A
// checkout that is seen later then finds its mail.
func createRow(ctx context.Context, p *mail.Project, tx *store.Tx) error {
	_, taken, err := project.Find(ctx, tx, p.ProductID)
	if err == nil && taken {
		p.ProductID, err = mail.FreeProductID(ctx, tx, p.ProductID, p.UID)
	}
	key := remoteKey(p)
	if err != nil || key == "" {
		return err // Apply creates it
	}
	if _, taken, err = project.FindKey(ctx, tx, key); err != nil || taken {
		return err
	}
	_, err = project.Import(ctx, tx, project.Exported{
		ID: p.ProductID, Name: p.ProductID, CreatedAt: int64(p.Created) / 1e9, Keys: []string{key},
	})
	return err
}

// rehome replaces the project_uids of other stores in a document with those of this store.
func rehome(uids map[string]string, d mail.Document) {
	here := func(uid *string) {
		if other, ok := uids[*uid]; ok {
			*uid = other
		}
	}
	switch d := d.(type) {
	case *mail.Agent:
		here(&d.ProjectUID)
		if uid, name, ok := strings.Cut(mail.Deref(d.Home), "/"); ok {
			here(&uid)
			home := uid + "/" + name
			d.Home = &home
		}
	case *mail.Message:
		here(&d.ProjectUID)
	case *mail.Delivery:
		here(&d.ProjectUID)
	case *mail.Contact:
		here(&d.FromProjectUID)
		here(&d.ToProjectUID)
	case *mail.Reservation:
		here(&d.ProjectUID)
	case *mail.Blob:
		here(&d.ProjectUID)
	}
}
