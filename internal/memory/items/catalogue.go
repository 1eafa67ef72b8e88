package items

import (
	"context"
	"encoding/json"

	"cairn/internal/memory"
)

const (
	selectTitles  = `SELECT id FROM projects`
	updateNoPulls = `UPDATE memory_streams SET subscribed = 0 WHERE stream = ? AND head_seq = 0`
)

// ApplyCatalogue applies a hub's catalogue. Its items are puts of vaults and memories.
func (d *Documents) ApplyCatalogue(ctx context.Context, docs []Item) error {
	d.given = givenUIDs(docs)
	projects, err := projectTitles(ctx, d.call)
	for i := range docs {
		if err == nil {
			err = d.catalogued(ctx, d.call, &docs[i], projects)
		}
	}
	return err
}

func (d *Documents) catalogued(ctx context.Context, s *memory.CallTx, doc *Item, projects map[string]bool) error {
	here, err := s.KnowsStream(ctx, doc.ID)
	if err != nil {
		return err
	}
	if here {
		return d.cataloguedHere(ctx, s, doc)
	}
	s.Memory = memory.MemoryRow{}
	doc.Memory = doc.ID
	if err := d.Apply(ctx, s.Tx, doc); err != nil {
		return err
	}
	var title, uid string
	switch v := doc.parsed.(type) {
	case *memory.VaultDoc:
		title = v.Title
	case *memory.MemoryDoc:
		title, uid = v.Vault.Title, v.ProjectUID()
	}
	if projects[title] {
		return nil
	}
	for _, uid := range [...]string{uid, title[max(0, len(title)-memory.UIDDigits):]} {
		if _, _, ours, err := projectOf(ctx, s, uid); err != nil || ours {
			return err
		}
	}
	return s.Exec(ctx, updateNoPulls, doc.ID)
}

// projectTitles returns the titles of the projects' vaults in earlier releases.
func projectTitles(ctx context.Context, s *memory.CallTx) (map[string]bool, error) {
	out := map[string]bool{}
	ids, err := s.Tx.Texts(ctx, selectTitles)
	for _, id := range ids {
		out[memory.TitleOf(id)] = true
	}
	return out, err
}

// givenUIDs returns the uids of the projects whose default memories are in a hub's catalogue.
func givenUIDs(docs []Item) map[string]bool {
	out := map[string]bool{}
	for _, doc := range docs {
		var d memory.MemoryDoc
		if doc.Kind == memory.KindMemory && json.Unmarshal(doc.Doc, &d) == nil {
			out[d.ProjectUID()] = true
		}
	}
	return out
}
