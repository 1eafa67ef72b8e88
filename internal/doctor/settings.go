package doctor

import (
	"fmt"
	"path/filepath"
	"strings"
)

// settings says whether the settings can be used.
func (d *diagnosing) settings() {
	if err := d.subject.Settings; err != nil {
		d.add("settings", Problem, messageOf(err),
			"nothing is recorded until it can be read: it may hold patterns or exclusions", hintOf(err))
		return
	}
	d.add("settings", OK, "settings can be used", "", "")
}

// unknownKeys names the keys of config.toml that nothing reads. Hooks say nothing of
// them: a key of a later version is no reason to stop recording.
func (d *diagnosing) unknownKeys() {
	path := filepath.Join(d.subject.Dir, "config.toml")
	unknown, err := d.subject.Unknown()
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
	d.add("settings.keys", Warning, "config.toml: "+strings.Join(found, "; "), "what is asked for there does not happen",
		"correct or remove it in "+path)
}
