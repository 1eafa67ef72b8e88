package memory

import (
	"context"
	"encoding/json"
)

const (
	selectHere    = `SELECT EXISTS (SELECT 1 FROM memory_streams WHERE stream = ?1 OR user_id = ?2 AND remote_id = ?1)`
	selectTitles  = `SELECT id FROM projects`
	updateNoPulls = `UPDATE memory_streams SET subscribed = 0 WHERE stream = ? AND head_seq = 0`
)

// Catalogue stores the vaults and memories that a hub has of a user. docs are puts of vaults and
// memories; that of a memory contains its vault. Existing rows do not change. A new memory is
// subscribed if its vault belongs to a project of this device; other memories are subscribed when
// they are first read (memories §10.3). Catalogue is idempotent.
func (b *Service) Catalogue(ctx context.Context, m Membership, docs []Item) error {
	return b.replicatorTx(ctx, m, nil, func(ctx context.Context, s *callTx) error {
		d, err := s.pulling(ctx, m)
		if err != nil {
			return err
		}
		s.given = givenUIDs(docs)
		projects, err := s.projectTitles(ctx)
		if err != nil {
			return err
		}
		for i := range docs {
			if err := d.catalogued(ctx, s, &docs[i], projects); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *Documents) catalogued(ctx context.Context, s *callTx, doc *Item, projects map[string]bool) error {
	var here bool
	if err := s.tx.Get(ctx, []any{&here}, selectHere, doc.ID, s.u.ID); err != nil {
		return err
	}
	if here {
		return s.cataloguedHere(ctx, doc)
	}
	s.m = memoryRow{}
	doc.Memory = doc.ID
	if err := d.Apply(ctx, s.tx, doc); err != nil {
		return err
	}
	var title, uid string
	switch v := doc.parsed.(type) {
	case *vaultDoc:
		title = v.Title
	case *memoryDoc:
		title, uid = v.Vault.Title, v.projectUID()
	}
	if projects[title] {
		return nil
	}
	for _, uid := range [...]string{uid, title[max(0, len(title)-uidDigits):]} {
		if _, _, ours, err := s.projectOf(ctx, uid); err != nil || ours {
			return err
		}
	}
	_, err := s.tx.Exec(ctx, updateNoPulls, doc.ID)
	return err
}

// projectTitles returns the titles of the projects' vaults in earlier releases.
func (s *callTx) projectTitles(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	ids, err := s.tx.Texts(ctx, selectTitles)
	for _, id := range ids {
		out[titleOf(id)] = true
	}
	return out, err
}

// givenUIDs returns the uids of the projects whose default memories are in a hub's catalogue.
func givenUIDs(docs []Item) map[string]bool {
	out := map[string]bool{}
	for _, doc := range docs {
		var d memoryDoc
		if doc.Kind == KindMemory && json.Unmarshal(doc.Doc, &d) == nil {
			out[d.projectUID()] = true
		}
	}
	return out
}
