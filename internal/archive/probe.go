package archive

import (
	"context"
	"errors"

	"cairn/internal/archive/repository"
	"cairn/internal/fault"
	"cairn/internal/store"
)

// ProbeNewest checks that the newest committed entities, Config.Probe of them, are in
// their work trees and in main. It returns how many are missing (mail §10.6). It changes
// nothing. Errors: those of the store; CodeNoGit.
func (a *Archiver) ProbeNewest(ctx context.Context) (missing int, err error) {
	newest, err := a.newest(ctx)
	if err != nil {
		return 0, err
	}
	for project, list := range newest {
		n, err := a.probe(ctx, project, list)
		if err != nil {
			return missing, err
		}
		a.setMissing(project, n)
		missing += n
	}
	return missing, nil
}

// newest returns the newest committed entities, by project.
func (a *Archiver) newest(ctx context.Context) (out map[string][]FileRef, err error) {
	err = a.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		out = map[string][]FileRef{}
		committed := map[string]int64{}
		for _, p := range a.Parts {
			if p.Newest == nil || a.Config.Probe <= 0 {
				continue
			}
			list, err := p.Newest(ctx, tx, a.Config.Probe)
			if err != nil {
				return err
			}
			for _, e := range list {
				if _, known := committed[e.Project]; !known {
					c, _, err := cursorOf(ctx, tx, e.Project)
					if err != nil {
						return err
					}
					committed[e.Project] = c.committed
				}
				if e.Seq <= committed[e.Project] {
					out[e.Project] = append(out[e.Project], e)
				}
			}
		}
		return nil
	})
	return out, err
}

// probe counts the files of one project that are missing.
func (a *Archiver) probe(ctx context.Context, project string, list []FileRef) (missing int, err error) {
	r, err := repository.At(a.folder(project))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, e := range list {
		found := repository.Exists(a.folder(project) + "/" + e.Path)
		if found {
			var bad error
			found, bad = r.HasFile(ctx, e.Path)
			if ctx.Err() != nil || fault.HasCode(bad, repository.CodeNoGit) {
				return missing, bad
			}
		}
		if !found {
			missing++
		}
	}
	return missing, nil
}
