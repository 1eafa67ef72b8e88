package archive

import (
	"context"
	"errors"
	"time"

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

func (l *line) retryAside(ctx context.Context, aside Aside) error {
	var pages Pages
	var c cursor
	var at int64
	err := l.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		pages, at = Pages{}, 0
		if c, _, _, err = cursorOf(ctx, tx, l.project); err != nil {
			return err
		}
		change, ok, err := asideChange(ctx, tx, aside.Seq)
		if err != nil || !ok {
			return err
		}
		at = change.At
		return l.streamsOf(ctx, tx, l.project, func(p *Part, stream string) error {
			if stream != change.Stream {
				return nil
			}
			pages, err = render(ctx, tx, partChanges{p, []store.Change{change}})
			if errors.Is(err, errUnfit) {
				pages, err = Pages{Refused: []store.Refusal{{Seq: change.Seq, Err: err}}}, nil
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	if len(pages.Refused) > 0 {
		return l.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, upsertAside, aside.Seq, c.key, pages.Refused[0].Err.Error())
			return err
		})
	}
	if len(pages.Files) > 0 {
		if err := l.open(ctx, c.head); err != nil {
			return err
		}
		if err := l.write(ctx, pages.Files); err != nil {
			return err
		}
		if _, err := l.commit(ctx, pages.Files, commitMessage(pages.Ops), time.Unix(0, at)); err != nil {
			return err
		}
	}
	return l.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, deleteAside, aside.Seq)
		return err
	})
}
