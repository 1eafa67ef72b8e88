// Package repair checks the content of a store in all parts and salvages a damaged store.
// It calls the checks and repairs of the parts in one order, so that doctor, salvage and
// restore agree.
package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/mail/documents"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/items"
	"cairn/internal/observation"
	"cairn/internal/observation/integrity"
	"cairn/internal/project"
	"cairn/internal/record/consistency"
	"cairn/internal/store"
	"cairn/internal/store/salvage"
)

// Check runs every check of a store: those of the file, of the change log and of each
// part. Doctor, salvage and restore all call it, so their results agree. An intact store
// has no findings. For a store of an older schema it skips the parts, whose tables may be
// missing.
//
// It returns the errors of store.Check. If a part cannot read its data, that is a
// finding.
func Check(ctx context.Context, s *store.Store) ([]string, error) {
	found, err := s.Check(ctx)
	if err != nil {
		return found, err
	}
	more, err := checkParts(ctx, s)
	return slices.Concat(found, more), err
}

func checkParts(ctx context.Context, s *store.Store) (found []string, err error) {
	older, err := s.IsOlder(ctx)
	if err != nil || older {
		return nil, err
	}
	reading := func(check func(context.Context, *store.Tx) ([]string, error)) func(context.Context) ([]string, error) {
		return func(ctx context.Context) (found []string, err error) {
			err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
				found, err = check(ctx, tx)
				return err
			})
			return found, err
		}
	}
	for _, part := range []struct {
		name  string
		check func(context.Context) ([]string, error)
	}{
		{"observations", func(ctx context.Context) ([]string, error) {
			return integrity.Check(ctx, observation.New(s, observation.Config{}))
		}},
		{"records", reading(consistency.Check)},
		{"mail", reading(documents.Check)},
		{"memories", reading(items.Check)},
		{"projects", reading(project.Check)},
	} {
		more, err := part.check(ctx)
		found = append(found, more...)
		if err == nil {
			continue
		}
		if f := fault.As(err); ctx.Err() == nil && f.Code != store.CodeCorrupt && f.Kind != fault.Unavailable {
			found = append(found, part.name+" cannot be read: "+f.Message)
			continue
		}
		return found, err
	}
	return found, nil
}

// CheckContent runs checkParts. If there are no findings, it compares the words in every
// full-text index with the texts. This takes about as long as building a search index.
// Doctor and salvage both call it, so their results agree.
func CheckContent(ctx context.Context, s *store.Store) ([]string, error) {
	found, err := checkParts(ctx, s)
	if err != nil || len(found) > 0 {
		return found, err
	}
	older, err := s.IsOlder(ctx)
	if err != nil || older {
		return nil, err
	}
	for _, part := range []struct {
		name  string
		check func(context.Context, *store.Tx) ([]string, error)
	}{{"observations", integrity.CheckWords}, {"records", consistency.CheckWords}, {"mail", documents.CheckWords}, {"memories", contents.CheckWords}} {
		var more []string
		err := s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			more, err = part.check(ctx, tx)
			return err
		})
		if err != nil {
			return found, fmt.Errorf("%s: %w", part.name, err)
		}
		found = append(found, more...)
	}
	return found, nil
}

// Salvage replaces a damaged store with the data that can still be read, repaired by all
// parts. It sets Check and Repair of the config. It returns the errors of salvage.Run.
func Salvage(ctx context.Context, config salvage.Config) (salvage.Report, error) {
	config.Check, config.Repair = CheckContent, repairParts
	return salvage.Run(ctx, config)
}

func repairParts(ctx context.Context, s *store.Store, altered func(table string, id int64)) error {
	if err := integrity.Repair(ctx, observation.New(s, observation.Config{}), altered); err != nil {
		return fmt.Errorf("observations: %w", err)
	}
	for _, part := range []struct {
		name   string
		repair func(context.Context, *store.Tx) error
	}{{"records", consistency.Repair}, {"mail", documents.Repair}, {"memories", items.Repair}, {"archive", archive.Repair}, {"projects", project.Repair}} {
		if err := s.Write(ctx, store.Full, part.repair); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// Summary returns the first line of one or more findings and how many more there are.
func Summary(found []string) string {
	first, _, _ := strings.Cut(found[0], "\n")
	if n := len(found) - 1; n > 0 {
		return fmt.Sprintf("%s, and %d more", first, n)
	}
	return first
}
