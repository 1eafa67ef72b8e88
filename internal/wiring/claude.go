package wiring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"cairn/internal/regular"
)

// execSince is the first version of Claude Code that runs a hook's program
// itself when its arguments stand apart; older ones ignore such entries.
var execSince = version{2, 1, 139}

// version is major, minor and patch.
type version [3]int

// formFor is how entries for a version of Claude Code are written.
func formFor(v version, known bool) form {
	switch {
	case !known:
		return either
	case less(v, execSince):
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

// claudeVersion finds the version of the installed Claude Code without running
// it: from where `claude` on the PATH leads (the native installer and Homebrew have
// a folder per version, npm a package.json), from the package below Claude's folder, and at
// last from what Claude Code itself noted as the version used last.
func (p Place) claudeVersion() (version, bool) {
	for _, dir := range filepath.SplitList(p.Path) {
		for _, name := range []string{"claude", "claude.exe", "claude.cmd"} {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				continue
			}
			if v, ok := versionAt(path); ok {
				return v, true
			}
		}
	}
	if v, ok := packageVersion(filepath.Join(p.Folder(Claude), "local", "node_modules", "@anthropic-ai", "claude-code")); ok {
		return v, true
	}
	var state struct {
		LastReleaseNotesSeen string `json:"lastReleaseNotesSeen"`
	}
	if !readJSON(p.claudeState(), &state) {
		return version{}, false
	}
	return parseVersion(state.LastReleaseNotesSeen)
}

// versionAt is the version of the program that a path leads to.
func versionAt(path string) (version, bool) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return version{}, false
	}
	for dir := target; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		switch filepath.Base(filepath.Dir(dir)) {
		case "versions", "claude-code": // the native installer's folder, Homebrew's
			if v, ok := parseVersion(filepath.Base(dir)); ok {
				return v, true
			}
		}
		if v, ok := packageVersion(dir); ok {
			return v, true
		}
	}
	// npm on Windows puts a script beside the folder of packages
	return packageVersion(filepath.Join(filepath.Dir(target), "node_modules", "@anthropic-ai", "claude-code"))
}

func packageVersion(dir string) (version, bool) {
	var pkg struct{ Name, Version string }
	if !readJSON(filepath.Join(dir, "package.json"), &pkg) || !strings.HasPrefix(pkg.Name, "@anthropic-ai/claude-code") {
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
		v[i], _ = strconv.Atoi(m[i+1]) // digits, and few
	}
	return v, true
}

// pluginPresent reports whether Claude Code has cairn as a plugin for this user:
// enabled in the settings, or installed and not disabled there.
func (p Place) pluginPresent() bool {
	var s struct {
		EnabledPlugins map[string]any `json:"enabledPlugins"`
	}
	readJSON(filepath.Join(p.Folder(Claude), "settings.json"), &s)
	for name, on := range s.EnabledPlugins {
		if isOurPlugin(name) && on != false {
			return true
		}
	}
	var installed struct {
		Plugins map[string]any `json:"plugins"`
	}
	readJSON(filepath.Join(p.Folder(Claude), "plugins", "installed_plugins.json"), &installed)
	for name, at := range installed.Plugins {
		if _, set := s.EnabledPlugins[name]; !set && isOurPlugin(name) && forUser(at) {
			return true
		}
	}
	return false
}

// forUser reports whether a plugin is installed for the user, not for single
// projects only.
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

// readJSON reads a file with or without comments; what it cannot read leaves
// nothing behind.
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
