package workspace

import (
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/settings"
	"cairn/internal/store"
)

// Config contains the paths of cairn's data and the options of this process.
type Config struct {
	Home string // the user's home directory, "" if unknown
	Dir  string // the data directory; see DataDir
	DB   string // the database file; "" for cairn.db in Dir
	Cwd  string // the working directory, "" if there is none
	Key  string // the text of CAIRN_KEY, "" if it is not set

	Setting func(key string) string // returns the environment's value for a key such as guard.mode (settings.EnvName), "" if it is not set; may be nil
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
		return "", fault.New(fault.Invalid, settings.Code, "CAIRN_HOME must be an absolute path")
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

// WithDB returns c with the default database file if c names none.
func (c Config) WithDB() Config {
	if c.DB == "" {
		c.DB = filepath.Join(c.Dir, "cairn.db")
	}
	return c
}
