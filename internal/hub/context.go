package hub

import (
	"context"
	"fmt"

	"cairn/internal/hub/database"
	"cairn/internal/replica"
)

// metaContext, followed by a memory and its tenant, names the row with the id, time and number
// of the memory's current context. The row saves a search in all items of the memory. It may
// be out of date, because an older hub process does not write it. So items with higher numbers
// are read too.
const metaContext = "context:"

const selectContexts = `SELECT hub_seq, canonical_ns, id FROM hub_items
WHERE memory_id = $1 AND tenant = $2 AND hub_seq > $3 AND kind = 'context' AND doc <> '' ORDER BY hub_seq`

// currentContext is the context of a memory that devices show: the one with the latest time
// and, among equal times, the highest number.
type currentContext struct {
	id      string // "" if there is no context
	ns, seq int64
	changed bool
}

// beats reports whether c replaces other as the current context.
func (c currentContext) beats(other currentContext) bool {
	return c.ns > other.ns || c.ns == other.ns && c.seq > other.seq
}

func (st *stream) contextMeta() string { return metaContext + st.id + ":" + st.tenant }

// loadContext reads the current context.
func (st *stream) loadContext(ctx context.Context) error {
	st.current = currentContext{}
	var text string
	found, err := st.s.One(ctx, database.SelectMeta, []any{st.contextMeta()}, &text)
	if err != nil {
		return err
	}
	if found {
		if _, err := fmt.Sscanf(text, "%s %d %d", &st.current.id, &st.current.ns, &st.current.seq); err != nil {
			st.current = currentContext{}
		}
	}
	if st.current.seq <= st.head.deletedSeq {
		st.current = currentContext{seq: st.head.deletedSeq}
	}
	return st.s.Each(ctx, selectContexts, []any{st.id, st.tenant, st.current.seq}, func(scan func(...any) error) (bool, error) {
		var c currentContext
		err := scan(&c.seq, &c.ns, &c.id)
		if st.current.id == "" || c.beats(st.current) {
			st.current = c
		}
		return true, err
	})
}

// saveContext stores the current context if it has changed.
func (st *stream) saveContext(ctx context.Context) error {
	if !st.current.changed {
		return nil
	}
	_, err := st.s.Exec(ctx, database.SetMeta, st.contextMeta(), fmt.Sprintf("%s %d %d", st.current.id, st.current.ns, st.current.seq))
	return err
}

// applyContext appends a context. A context written over the current one becomes the current
// one, regardless of its device's clock. A context written over another version has lost the
// conflict. It is stored as a version with a time before the current one's, so that older
// devices agree. If the device does not name the version, the time decides.
func (st *stream) applyContext(in incoming) (replica.Result, error) {
	ns, cur := min(in.at.UnixNano(), st.now), st.current
	switch base := in.doc.BaseID; {
	case base != nil && *base == cur.id:
		if cur.id != "" {
			ns = max(ns, cur.ns+1)
		}
	case base != nil && cur.id != "":
		ns, in.doc.ConflictWith = min(ns, cur.ns-1), cur.id
	case base == nil && cur.id != "" && ns < cur.ns && in.doc.ConflictWith == "":
		in.doc.ConflictWith = cur.id
	}
	in.doc.UpdatedAt, in.doc.MemoryID = timeText(ns), st.id
	l, err := st.log(in, in.doc.ContextID, ns, 0, in.doc)
	if next := (currentContext{id: l.id, ns: ns, seq: l.seq, changed: true}); err == nil && (cur.id == "" || next.beats(cur)) {
		st.current = next
	}
	return done(in, l), err
}
