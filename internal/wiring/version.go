package wiring

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/regular"
)

// version is major, minor and patch.
type version [3]int

// formFor returns the form of entries for a version of a host. since is the first version that
// accepts arguments in a separate list; the zero version means never. Older versions ignore such
// entries.
func formFor(v version, known bool, since version) form {
	switch {
	case since == version{}:
		return oneLine
	case !known:
		return either
	case less(v, since):
		return oneLine
	}
	return apart
}

func less(a, b version) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// versionOf returns the version of an installed harness without running it. It first checks the
// target of the command on the PATH: native installers and Homebrew have a folder per version,
// npm a package.json. Then it checks the package below the harness's folder. Last, it reads the
// last used version from the harness's own notes.
func (p Paths) versionOf(h harness.Harness) (version, bool) {
	for _, dir := range filepath.SplitList(p.Path) {
		for _, end := range []string{"", ".exe", ".cmd"} {
			path := filepath.Join(dir, h.Command+end)
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				continue
			}
			if v, ok := versionAt(path, h.Package); ok {
				return v, true
			}
		}
	}
	if v, ok := packageVersion(filepath.Join(h.Folder(p.homes()), "local", "node_modules", h.Package), h.Package); ok {
		return v, true
	}
	files := h.Files(p.homes())
	var state map[string]any
	if !readJSON(files[len(files)-1].Path, &state) {
		return version{}, false
	}
	noted, _ := state[h.Noted].(string)
	return parseVersion(noted)
}

// versionAt returns the version of the program at the target of a path.
func versionAt(program, name string) (version, bool) {
	target, err := filepath.EvalSymlinks(program)
	if err != nil {
		return version{}, false
	}
	for dir := target; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		switch filepath.Base(filepath.Dir(dir)) {
		case "versions", path.Base(name): // the native installer's folder, or Homebrew's
			if v, ok := parseVersion(filepath.Base(dir)); ok {
				return v, true
			}
		}
		if v, ok := packageVersion(dir, name); ok {
			return v, true
		}
	}
	// On Windows, npm puts a script next to the folder of packages.
	return packageVersion(filepath.Join(filepath.Dir(target), "node_modules", name), name)
}

func packageVersion(dir, name string) (version, bool) {
	var pkg struct{ Name, Version string }
	if !readJSON(filepath.Join(dir, "package.json"), &pkg) || !strings.HasPrefix(pkg.Name, name) {
		return version{}, false
	}
	return parseVersion(pkg.Version)
}

func parseVersion(s string) (v version, ok bool) {
	m := regexp.MustCompile(`^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(\D|$)`).FindStringSubmatch(strings.TrimSuffix(s, ".exe"))
	if m == nil {
		return v, false
	}
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // a few digits, never an error
	}
	return v, true
}

// pluginPresent reports whether a harness such as Claude Code has cairn as a plugin for this
// user. The plugin is enabled in the settings, or installed and not disabled there.
func (p Paths) pluginPresent(h harness.Harness) bool {
	if !h.Plugin {
		return false
	}
	var s struct {
		EnabledPlugins map[string]any `json:"enabledPlugins"`
	}
	readJSON(filepath.Join(h.Folder(p.homes()), "settings.json"), &s)
	for name, on := range s.EnabledPlugins {
		if isOurPlugin(name) && on != false {
			return true
		}
	}
	var installed struct {
		Plugins map[string]any `json:"plugins"`
	}
	readJSON(filepath.Join(h.Folder(p.homes()), "plugins", "installed_plugins.json"), &installed)
	for name, at := range installed.Plugins {
		if _, set := s.EnabledPlugins[name]; !set && isOurPlugin(name) && forUser(at) {
			return true
		}
	}
	return false
}

// forUser reports whether a plugin is installed for the user, not only for single projects.
func forUser(installed any) bool {
	list, ok := installed.([]any)
	if !ok {
		list = []any{installed}
	}
	for _, one := range list {
		m, ok := one.(map[string]any)
		if scope, set := m["scope"]; ok && (!set || scope == "user") {
			return true
		}
	}
	return false
}

func isOurPlugin(name string) bool {
	name, _, _ = strings.Cut(name, "@")
	return name == serverName
}

// readJSON reads a file with or without comments. It returns false if the file cannot be read or
// parsed.
func readJSON(path string, into any) bool {
	data, err := regular.Read(path, regular.MaxForeign)
	if err != nil {
		return false
	}
	d, err := parseDocument(data)
	if err != nil {
		return false
	}
	d.root.Standardize()
	return json.Unmarshal(d.root.Pack(), into) == nil
}
