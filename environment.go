package cairn

import (
	"os"
	"strings"
)

// ConfigOf is the configuration that an environment asks for: data directory, key, agent
// and settings. db names the database file, "" for that of CAIRN_DB. Errors: those of
// DataDir.
func ConfigOf(getenv func(string) string, db string) (Config, error) {
	home := HomeOf(getenv)
	dir, err := DataDir(getenv("CAIRN_HOME"), home)
	if err != nil {
		return Config{}, err
	}
	if db == "" {
		db = getenv("CAIRN_DB")
	}
	return Config{
		Home: home, Dir: dir, DB: db, Key: getenv("CAIRN_KEY"), Agent: strings.TrimSpace(getenv("CAIRN_AGENT")),
		Setting: func(key string) string { return getenv(EnvName(key)) },
	}, nil
}

// HomeOf is the home directory in an environment, "" if it names none.
func HomeOf(getenv func(string) string) string {
	if h := getenv("USERPROFILE"); h != "" && os.PathSeparator == '\\' {
		return h
	}
	return getenv("HOME")
}
