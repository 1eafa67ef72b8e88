package workspace

import (
	"os"
	"strings"

	"cairn/internal/settings"
)

// ConfigOf returns the configuration in an environment: data directory, key, agent and
// settings. db is the database file, "" for CAIRN_DB. Errors: those of DataDir.
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
		Setting: func(key string) string { return getenv(settings.EnvName(key)) },
	}, nil
}

// HomeOf returns the home directory in an environment, "" if it names none.
func HomeOf(getenv func(string) string) string {
	if h := getenv("USERPROFILE"); h != "" && os.PathSeparator == '\\' {
		return h
	}
	return getenv("HOME")
}
