package doctor

import (
	"fmt"
	"path/filepath"
	"strings"
)

// settings reports whether the settings are valid.
func (d *doctorRun) settings() {
	if err := d.subject.Settings; err != nil {
		d.add("settings", Problem, messageOf(err),
			"nothing is recorded until it is valid: it may contain redaction patterns or exclusions", hintOf(err))
		return
	}
	d.add("settings", OK, "settings are valid", "", "")
}

// unknownKeys reports the unknown keys of config.toml. Hooks ignore them, because a key of a
// later version must not stop recording.
func (d *doctorRun) unknownKeys() {
	path := filepath.Join(d.subject.Dir, "config.toml")
	unknown, err := d.subject.Unknown()
	if err != nil || len(unknown) == 0 {
		return // the error is already reported
	}
	var found []string
	for _, u := range unknown {
		one := fmt.Sprintf("line %d: %s is unknown", u.Line, u.Name)
		if u.Like != "" {
			one += " (did you mean " + u.Like + "?)"
		}
		found = append(found, one)
	}
	d.add("settings.keys", Warning, "config.toml: "+strings.Join(found, "; "), "these settings have no effect",
		"correct or remove it in "+path)
}
