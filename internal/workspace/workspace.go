package workspace

import (
	"context"
	"sync"

	"cairn/internal/mail/agents"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/settings"
	"cairn/internal/store"
)

// Workspace is an open workspace. Its methods are safe for concurrent use.
type Workspace struct {
	Config            Config
	Settings          settings.Settings
	ObservationConfig observation.Config
	Location          project.Location // the location of Config.Cwd

	options Options

	mu    sync.Mutex
	store *store.Store // nil until it is needed and exists
	key   []byte       // of the open store, nil if it is not encrypted
}

// Options are the functions that differ between programs.
type Options struct {
	OpenStore func(context.Context, store.Config) (*store.Store, error) // store.Open or store.OpenWithDriver
	Prepare   func(context.Context, *store.Store)                       // called with a store that was opened for writing, but not in a hook; may be nil
	MediaType func(data []byte) string                                  // names the type of attachments of mail; see mail.Config
	Check     settings.Check                                            // checks further keys of the settings; may be nil
}

// Open reads the settings. The store is opened when it is first needed, and only a write
// creates it. For invalid settings it returns a workspace with default settings, and
// settings.Code (Invalid).
func Open(c Config, o Options) (*Workspace, error) {
	w := &Workspace{Config: c.WithDB(), options: o}
	err := w.read()
	if err != nil {
		w = &Workspace{Config: c.WithDB(), options: o}
	}
	return w, err
}

func (w *Workspace) read() (err error) {
	c := w.Config
	if c.Cwd != "" {
		if w.Location, err = project.Locate(c.Cwd, c.Home); err != nil {
			return err
		}
	}
	if w.Settings, err = settings.Read(c.Dir, w.Location.Root, w.options.Check); err != nil {
		return err
	}
	if err = w.Settings.Work.Override(c.Setting, w.options.Check); err != nil {
		return err
	}
	if w.ObservationConfig, err = w.Settings.ObservationConfig(c.Home); err != nil {
		return settings.FilterFault(err, c.Dir, w.Location.Root)
	}
	w.ObservationConfig.Kept = []observation.Keeper{record.Kept, agents.Kept}
	return nil
}
