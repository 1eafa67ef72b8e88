package cairn

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/mail/agents"
	"cairn/internal/memory"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/replica"
	"cairn/internal/store"
)

// Config says where cairn keeps its data and how this process uses it.
type Config struct {
	Home string // the user's home directory, "" if unknown
	Dir  string // the data directory; see DataDir
	DB   string // the database file; "" for cairn.db in Dir
	Cwd  string // the working directory that "here" means, "" if there is none to speak of
	Key  string // the text of CAIRN_KEY, "" if it is not set

	Setting func(key string) string // what the environment gives a key such as guard.mode (EnvName), "" for none; nil for nothing
	Agent   string                  // CAIRN_AGENT: the agent as which this process acts, "" if it is not set

	Role  store.Role
	Wait  time.Duration    // for a lock; 0 for the role's
	Clock func() time.Time // nil for the system's
}

// DataDir is the data directory that CAIRN_HOME (value) asks for: absolute, or
// beginning with ~; empty means ~/.cairn. home "" is looked up in the user
// database; without one the error says to set CAIRN_HOME (observations §1, §13).
func DataDir(value, home string) (dir string, err error) {
	if home == "" && (value == "" || strings.HasPrefix(value, "~")) {
		if home, err = homeOfUser(); err != nil {
			return "", err
		}
	}
	switch {
	case value == "":
		return filepath.Join(home, ".cairn"), nil
	case value == "~" || strings.HasPrefix(value, "~/") || strings.HasPrefix(value, `~\`):
		return filepath.Join(home, value[1:]), nil
	case !filepath.IsAbs(value):
		return "", fault.New(fault.Invalid, CodeSettings, "CAIRN_HOME must be an absolute path")
	}
	return filepath.Clean(value), nil
}

func homeOfUser() (string, error) {
	u, err := user.Current()
	if err != nil || u.HomeDir == "" {
		return "", fault.New(fault.Unavailable, "no_home", "no home directory is known").WithHint("set CAIRN_HOME")
	}
	return u.HomeDir, nil
}

// Cairn is an open cairn. Its methods may be called from any number of
// goroutines.
type Cairn struct {
	config   Config
	settings settings
	journal  observation.Config
	place    project.Location // of Config.Cwd

	openStore func(context.Context, store.Config) (*store.Store, error)

	mu    sync.Mutex
	store *store.Store    // nil until it is needed and there
	book  *memory.Service // over the store, nil until it is needed
	key   []byte          // of the open store, nil if it is plain

	following   *archive.Archiver // of this process's FollowArchive
	serverState serverState
	replicators map[string]*replica.Replicator // of this process's Replication.Run, by local user
}

// Open reads the settings; the store itself is opened when it is first needed,
// and made only by something that writes. Settings that cannot be used are
// CodeSettings (Invalid).
func Open(c Config) (*Cairn, error) { return open(c, store.Open) }

// OpenWithDriver is Open for the program cairn-hook, which links one SQLite: it opens the
// store by store.OpenWithDriver.
func OpenWithDriver(c Config) (*Cairn, error) { return open(c, store.OpenWithDriver) }

func open(c Config, openStore func(context.Context, store.Config) (*store.Store, error)) (*Cairn, error) {
	c = withDB(c)
	k := &Cairn{config: c, openStore: openStore}
	var err error
	if c.Cwd != "" {
		if k.place, err = project.Locate(c.Cwd, c.Home); err != nil {
			return nil, err
		}
	}
	if k.settings, err = readSettings(c.Dir, k.place.Root); err != nil {
		return nil, err
	}
	if err = k.settings.work.override(c.Setting); err != nil {
		return nil, err
	}
	if k.journal, err = k.settings.journalConfig(c.Home); err != nil {
		return nil, filterFault(err, c.Dir, k.place.Root)
	}
	k.journal.Kept = []observation.Keeper{record.Kept, agents.Kept}
	return k, nil
}

// withDB names the database file where none was named.
func withDB(c Config) Config {
	if c.DB == "" {
		c.DB = filepath.Join(c.Dir, "cairn.db")
	}
	return c
}

// stopTime is how long writes of memories that were accepted may take to end.
const stopTime = 10 * time.Second

// Close ends the writes of memories that were accepted and closes the store. Closing
// twice is harmless.
func (c *Cairn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var stopped error
	if c.book != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		stopped = c.book.Stop(ctx)
	}
	if c.store == nil {
		return stopped
	}
	return errors.Join(stopped, c.store.Close())
}

// Store opens the store for writing, making it if it is missing.
func (c *Cairn) Store(ctx context.Context) (*store.Store, error) {
	return c.opened(ctx, true)
}

// opened returns the store, nil if there is none and make is false.
func (c *Cairn) opened(ctx context.Context, make bool) (*store.Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store != nil {
		return c.store, nil
	}
	config := store.Config{Path: c.config.DB, Role: c.config.Role, Wait: c.config.Wait, Clock: c.config.Clock}
	if c.config.Role == store.Server {
		config.MaxReaders, config.MinReaders = c.settings.work.DB.most(), c.settings.work.DB.kept()
	}
	if info, err := os.Stat(c.config.DB); !make && (err != nil || info.Size() == 0) {
		if errors.Is(err, os.ErrNotExist) || err == nil {
			return nil, nil
		}
		return nil, err
	}
	s, err := c.openStore(ctx, config)
	if fault.HasCode(err, store.CodeEncrypted) || fault.HasCode(err, store.CodeCorrupt) {
		s, err = c.openWithKey(ctx, &config, err)
	}
	if !make && (fault.HasCode(err, store.CodeReadOnly) || fault.HasCode(err, store.CodeFull)) {
		config.ReadOnly = true
		s, err = c.openStore(ctx, config)
	}
	c.store, c.key = s, config.Key
	if err == nil && c.config.Role != store.Hook && !config.ReadOnly {
		c.identify(ctx, s)
	}
	return s, err
}

// tried does something with a part of cairn over the store. While there is no store, it
// is first tried over nothing, and the store is made if that succeeds: so do may be called
// twice, and what is refused makes no store. open opens the part; there is false where it
// is over nothing. Errors: those of open and do.
func tried[P any](open func(make bool) (part P, there bool, err error), do func(P) error) error {
	part, there, err := open(false)
	if err == nil && !there {
		if err = do(part); err == nil {
			part, _, err = open(true)
		}
	}
	if err != nil {
		return err
	}
	return do(part)
}

// over is the observations part over a store, or over nothing (nil).
func (c *Cairn) over(s *store.Store) *observation.Service { return observation.New(s, c.journal) }

// Observations is the observations part over the store, or over nothing while there
// is no store.
func (c *Cairn) Observations(ctx context.Context) (*observation.Service, error) {
	s, err := c.opened(ctx, false)
	if err != nil {
		return nil, err
	}
	return c.over(s), nil
}

// writing is the observations part over a store that is made if it is missing.
func (c *Cairn) writing(ctx context.Context) (*observation.Service, error) {
	s, err := c.opened(ctx, true)
	if err != nil {
		return nil, err
	}
	return c.over(s), nil
}

// Encrypted reports whether the store is encrypted; a missing one is not.
func (c *Cairn) Encrypted(ctx context.Context) (bool, error) {
	s, err := c.opened(ctx, false)
	return s != nil && s.Encrypted(), err
}

// Path is the database file.
func (c *Cairn) Path() string { return c.config.DB }

// Cwd is the working directory that "here" means, "" if there is none.
func (c *Cairn) Cwd() string { return c.config.Cwd }
