package cairn

import (
	"fmt"
	"path/filepath"
	"strings"

	"cairn/internal/tomlfile"
)

// settings checks the settings and returns cairn with what of them could be read.
func (d *diagnosing) settings() *Cairn {
	c, err := openAnyway(d.config)
	if err != nil {
		d.add("settings", CheckProblem, errorText(err),
			"nothing is recorded until it can be read: it may hold patterns or exclusions", hintOf(err))
		return c
	}
	d.add("settings", CheckOK, "settings can be used", "", "")
	return c
}

// unknownKeys names the keys of config.toml that nothing reads. Hooks say nothing of
// them: a key of a later version is no reason to stop recording.
func (d *diagnosing) unknownKeys() {
	path := filepath.Join(d.config.Dir, "config.toml")
	unknown, err := tomlfile.Unknown(path, &userFile{})
	if err != nil || len(unknown) == 0 {
		return // an error is said already
	}
	var found []string
	for _, u := range unknown {
		one := fmt.Sprintf("line %d: %s is unknown", u.Line, u.Name)
		if u.Like != "" {
			one += " (did you mean " + u.Like + "?)"
		}
		found = append(found, one)
	}
	d.add("settings.keys", CheckWarning, "config.toml: "+strings.Join(found, "; "), "what is asked for there does not happen",
		"correct or remove it in "+path)
}
