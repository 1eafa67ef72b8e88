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
	"cairn/internal/memory/memories"
	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/replica"
	"cairn/internal/store"
)

// Config contains the paths of cairn's data and the options of this process.
type Config struct {
	Home string // the user's home directory, "" if unknown
	Dir  string // the data directory; see DataDir
	DB   string // the database file; "" for cairn.db in Dir
	Cwd  string // the working directory, "" if there is none
	Key  string // the text of CAIRN_KEY, "" if it is not set

	Setting func(key string) string // returns the environment's value for a key such as guard.mode (EnvName), "" if it is not set; may be nil
	Agent   string                  // CAIRN_AGENT: the agent that this process acts as, "" if it is not set

	Role  store.Role
	Wait  time.Duration    // maximum wait for a lock; 0 for the role's default
	Clock func() time.Time // nil for the system's
}

// DataDir returns the data directory for value, the content of CAIRN_HOME: an absolute
// path, or one that begins with ~. An empty value means ~/.cairn. If home is "", it is
// looked up in the user database. If there is none, the error suggests to set CAIRN_HOME
// (observations §1, §13).
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
		return "", fault.New(fault.Unavailable, "no_home", "the home directory is unknown").WithHint("set CAIRN_HOME")
	}
	return u.HomeDir, nil
}

// Cairn is an open cairn. Its methods are safe for concurrent use.
type Cairn struct {
	config            Config
	settings          settings
	observationConfig observation.Config
	location          project.Location // the location of Config.Cwd

	openStore func(context.Context, store.Config) (*store.Store, error)

	mu       sync.Mutex
	store    *store.Store      // nil until it is needed and exists
	memories *memories.Service // uses the store; nil until it is needed
	key      []byte            // of the open store, nil if it is not encrypted

	following   *archive.Archiver // of this process's FollowArchive
	serverState serverState
	replicators map[string]*replica.Replicator // of this process's Replication.Run, by local user
}

// Open reads the settings. The store is opened when it is first needed, and only a write
// creates it. Invalid settings return CodeSettings (Invalid).
func Open(c Config) (*Cairn, error) { return open(c, store.Open) }

// OpenWithDriver is Open for the program cairn-hook, which links only one SQLite driver.
// It opens the store with store.OpenWithDriver.
func OpenWithDriver(c Config) (*Cairn, error) { return open(c, store.OpenWithDriver) }

func open(c Config, openStore func(context.Context, store.Config) (*store.Store, error)) (*Cairn, error) {
	c = withDB(c)
	k := &Cairn{config: c, openStore: openStore}
	var err error
	if c.Cwd != "" {
		if k.location, err = project.Locate(c.Cwd, c.Home); err != nil {
			return nil, err
		}
	}
	if k.settings, err = readSettings(c.Dir, k.location.Root); err != nil {
		return nil, err
	}
	if err = k.settings.work.override(c.Setting); err != nil {
		return nil, err
	}
	if k.observationConfig, err = k.settings.observationConfig(c.Home); err != nil {
		return nil, filterFault(err, c.Dir, k.location.Root)
	}
	k.observationConfig.Kept = []observation.Keeper{record.Kept, agents.Kept}
	return k, nil
}

// withDB sets the default database file if c names none.
func withDB(c Config) Config {
	if c.DB == "" {
		c.DB = filepath.Join(c.Dir, "cairn.db")
	}
	return c
}

// stopTime is how long Close waits for accepted writes of memories.
const stopTime = 10 * time.Second

// Close completes accepted writes of memories and closes the store. It is idempotent.
func (c *Cairn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var stopped error
	if c.memories != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		stopped = c.memories.Stop(ctx)
	}
	if c.store == nil {
		return stopped
	}
	return errors.Join(stopped, c.store.Close())
}

// Store opens the store for writing. A missing store is created.
func (c *Cairn) Store(ctx context.Context) (*store.Store, error) {
	return c.opened(ctx, true)
}

// opened returns the store. It returns nil if the store does not exist and make is false.
func (c *Cairn) opened(ctx context.Context, make bool) (*store.Store, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store != nil {
		return c.store, nil
	}
	config := store.Config{Path: c.config.DB, Role: c.config.Role, Wait: c.config.Wait, Clock: c.config.Clock}
	if c.config.Role == store.Server {
		config.MaxReaders, config.MinReaders = c.settings.work.DB.maxOpen(), c.settings.work.DB.minOpen()
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

// tryThenCreate calls do with a part of cairn. If there is no store, it first calls do with a
// part without a store, and creates the store only if that succeeds. So do may be called
// twice, and a rejected command does not create a store. open opens the part; its result there
// is false if the part has no store. Errors: those of open and do.
func tryThenCreate[P any](open func(make bool) (part P, there bool, err error), do func(P) error) error {
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

// observationsOver returns the observations part for a store, which may be nil.
func (c *Cairn) observationsOver(s *store.Store) *observation.Service {
	return observation.New(s, c.observationConfig)
}

// Observations returns the observations part. Without a store it finds nothing.
func (c *Cairn) Observations(ctx context.Context) (*observation.Service, error) {
	s, err := c.opened(ctx, false)
	if err != nil {
		return nil, err
	}
	return c.observationsOver(s), nil
}

// writableObservations returns the observations part. A missing store is created.
func (c *Cairn) writableObservations(ctx context.Context) (*observation.Service, error) {
	s, err := c.opened(ctx, true)
	if err != nil {
		return nil, err
	}
	return c.observationsOver(s), nil
}

// Encrypted reports whether the store is encrypted. A missing store is not.
func (c *Cairn) Encrypted(ctx context.Context) (bool, error) {
	s, err := c.opened(ctx, false)
	return s != nil && s.Encrypted(), err
}

// Path returns the path of the database file.
func (c *Cairn) Path() string { return c.config.DB }

// Cwd returns the working directory, "" if there is none.
func (c *Cairn) Cwd() string { return c.config.Cwd }
