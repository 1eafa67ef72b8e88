package archive

import (
	"context"
	"errors"

	"cairn/internal/store"
)

// RetryAsides tries all changes again that could not be archived. One that has
// become pointless, since its entity has a later document, is forgotten. Errors:
// those of the store; a project that cannot be archived now keeps its own.
func (a *Archivist) RetryAsides(ctx context.Context) error {
	statuses, err := a.Status(ctx, "")
	for _, s := range statuses {
		if len(s.Aside) == 0 {
			continue
		}
		if failed := a.line(s.Project).retryAsides(ctx, s.Aside); failed != nil && ctx.Err() == nil {
			a.count(failed)
		}
	}
	return err
}

// retryAsides tries those of one project.
func (l *line) retryAsides(ctx context.Context, list []Aside) error {
	return l.locked(ctx, func() error {
		for _, aside := range list {
			if err := l.retryAside(ctx, aside); err != nil {
				l.drop()
				return err
			}
		}
		return nil
	})
}

// retryAside tries one. What it comes to is written by comparing the whole project:
// files made of that change alone may be older than those that are there.
func (l *line) retryAside(ctx context.Context, aside Aside) error {
	var c cursor
	var refused error
	pending := false
	err := l.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if c, _, _, err = cursorOf(ctx, tx, l.project); err != nil {
			return err
		}
		var change store.Change
		if change, pending, err = asideChange(ctx, tx, aside.Seq); err != nil || !pending {
			return err
		}
		refused, err = l.refusal(ctx, tx, change)
		return err
	})
	if err != nil {
		return err
	}
	if pending && refused == nil {
		if err = l.open(ctx, c.head); err == nil {
			_, err = l.rebuild(ctx, false)
		}
		if err != nil {
			return err
		}
	}
	return l.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		if refused != nil {
			_, err := tx.Exec(ctx, upsertAside, aside.Seq, c.key, refused.Error())
			return err
		}
		_, err := tx.Exec(ctx, deleteAside, aside.Seq)
		return err
	})
}

// refusal is why a change cannot be rendered, nil if it can.
func (l *line) refusal(ctx context.Context, tx *store.Tx, change store.Change) (refused, err error) {
	err = l.streamsOf(ctx, tx, l.project, func(p *Part, stream string) error {
		if stream != change.Stream {
			return nil
		}
		pages, err := render(ctx, tx, partChanges{p, []store.Change{change}})
		if errors.Is(err, errUnfit) {
			refused, err = err, nil
		}
		if len(pages.Refused) > 0 {
			refused = pages.Refused[0].Err
		}
		return err
	})
	return refused, err
}
