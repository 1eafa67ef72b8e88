package workspace

import (
	"context"
	"errors"
	"os"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Store opens the store for writing. A missing store is created.
func (w *Workspace) Store(ctx context.Context) (*store.Store, error) {
	return w.Opened(ctx, true)
}

// Opened returns the store, which it opens at the first use. It returns nil if the store
// does not exist and make is false.
func (w *Workspace) Opened(ctx context.Context, make bool) (*store.Store, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store != nil {
		return w.store, nil
	}
	config := store.Config{Path: w.Config.DB, Role: w.Config.Role, Wait: w.Config.Wait, Clock: w.Config.Clock}
	if w.Config.Role == store.Server {
		config.MaxReaders, config.MinReaders = w.Settings.Work.DB.MaxOpen(), w.Settings.Work.DB.MinOpen()
	}
	if info, err := os.Stat(w.Config.DB); !make && (err != nil || info.Size() == 0) {
		if errors.Is(err, os.ErrNotExist) || err == nil {
			return nil, nil
		}
		return nil, err
	}
	s, err := w.options.OpenStore(ctx, config)
	if fault.HasCode(err, store.CodeEncrypted) || fault.HasCode(err, store.CodeCorrupt) {
		s, err = w.openWithKey(ctx, &config, err)
	}
	if !make && (fault.HasCode(err, store.CodeReadOnly) || fault.HasCode(err, store.CodeFull)) {
		config.ReadOnly = true
		s, err = w.options.OpenStore(ctx, config)
	}
	w.store, w.key = s, config.Key
	if err == nil && w.Config.Role != store.Hook && !config.ReadOnly && w.options.Prepare != nil {
		w.options.Prepare(ctx, s)
	}
	return s, err
}

// Encrypted reports whether the store is encrypted. A missing store is not.
func (w *Workspace) Encrypted(ctx context.Context) (bool, error) {
	s, err := w.Opened(ctx, false)
	return s != nil && s.Encrypted(), err
}

// Path returns the path of the database file.
func (w *Workspace) Path() string { return w.Config.DB }

// Cwd returns the working directory, "" if there is none.
func (w *Workspace) Cwd() string { return w.Config.Cwd }

// Current returns the store if it is open, else nil.
func (w *Workspace) Current() *store.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.store
}

// Key returns the key of the open store, nil if it is not encrypted or not open.
func (w *Workspace) Key() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.key
}

// Close closes the store. The next use opens it again. It is idempotent.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.store
	w.store = nil
	if s == nil {
		return nil
	}
	return s.Close()
}

// Leave ends the use of the store in a process that exits immediately afterwards. It leaves
// a short write-ahead log to the next process; see store.Leave.
func (w *Workspace) Leave() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store == nil {
		return nil
	}
	return w.store.Leave()
}
