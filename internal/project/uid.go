package project

import (
	"context"
	"slices"

	"cairn/internal/store"
)

// KeyUID is a key of a project and the uid derived from it.
type KeyUID struct {
	Key, UID string

	// Portable reports whether the key means the same project on every device: the key
	// of a remote or of a root commit, not a path.
	Portable bool
}

// KeysOf returns the keys of a project with their uids, the strongest first. A project
// without keys and without a place gets a key from its id. A project with a place whose
// keys are not computed yet has the key of its path.
func KeysOf(ctx context.Context, tx *store.Tx, q Project) ([]KeyUID, error) {
	texts, err := tx.Texts(ctx, selectKeys, q.Key)
	if err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		switch {
		case q.Identity != "":
			texts = []string{repositoryKey(q.Identity)}
		case q.Root != "":
			texts = []string{pathKind + q.Root}
		default:
			texts = []string{nameKind + q.ID}
		}
	}
	keys, err := withUIDs(ctx, tx, q.UID, texts...)
	slices.SortStableFunc(keys, func(a, b KeyUID) int {
		if d := strength(b.Key) - strength(a.Key); d != 0 {
			return d
		}
		return isFirst(b.UID == q.UID) - isFirst(a.UID == q.UID)
	})
	return keys, err
}

func isFirst(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// KeyAt returns the key that a project of a place gets if the place has no project yet;
// its UID is "" for the root of a file system.
func KeyAt(ctx context.Context, tx *store.Tx, p Location) (KeyUID, error) {
	if p.Identity == "" && p.kind == atTop {
		return KeyUID{}, nil
	}
	keys, err := withUIDs(ctx, tx, "", p.key())
	if err != nil {
		return KeyUID{}, err
	}
	return keys[0], nil
}

// withUIDs returns keys with their uids for a project with the given uid, "" for none.
func withUIDs(ctx context.Context, tx *store.Tx, uid string, keys ...string) ([]KeyUID, error) {
	devices, err := tx.Devices(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]KeyUID, len(keys))
	for i, key := range keys {
		out[i] = KeyUID{Key: key, UID: uidHere(key, uid, devices), Portable: strength(key) != strength(pathKind)}
	}
	return out, nil
}
