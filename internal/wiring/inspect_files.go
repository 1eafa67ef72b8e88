package wiring

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"cairn/internal/harness"
	"cairn/internal/regular"
	"cairn/internal/tomlfile"
)

// contents is the readable content of one settings file.
type contents struct {
	settings
	exists bool
	err    error
	doc    *document      // for JSON
	config map[string]any // for TOML
	raw    []byte         // for a block or a script
}

func (s settings) read() contents {
	c := contents{settings: s, config: map[string]any{}}
	data, err := regular.Read(s.path, regular.MaxForeign)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	} else {
		c.exists = true
	}
	switch {
	case err != nil:
		c.err = err
	case s.format == harness.Block || s.format == harness.Script:
		c.raw = data
	case s.format == harness.TOML:
		c.err = tomlfile.Decode(s.path, []byte(strings.TrimPrefix(string(data), bom)), &c.config)
	default:
		c.doc, c.err = parseDocument(data)
	}
	return c
}

// calls returns the calls of cairn's entries in a file.
func (c contents) calls() []call {
	if c.err != nil {
		return nil
	}
	var out []call
	if one, ok := writtenBy(c.raw); ok {
		out = append(out, one)
	}
	if hooks := c.doc.items("hooks"); c.hooks != nil && hooks != nil && hooks.object != nil {
		for _, m := range hooks.object.Members {
			for _, p := range c.entries(text(m.Name)) {
				one, _ := ourCall(p.entry, c.hooks.windows)
				out = append(out, one)
			}
		}
	}
	if c.status != nil {
		if one, ours := c.status.call(member(c.doc.object(), statusMember)); ours {
			out = append(out, one)
		}
	}
	if c.server != nil {
		if s, there := c.serverCall(); there && c.server.ours(s) {
			out = append(out, s)
		}
	}
	return out
}

// serverCall returns the call of the MCP server cairn, false if there is no such server.
func (c contents) serverCall() (call, bool) {
	if c.format == harness.TOML {
		return codexServer(c.config)
	}
	entry := c.doc.items(c.server.form.Under, serverName)
	if entry == nil {
		return call{}, false
	}
	if entry.object == nil {
		return call{}, true
	}
	return c.server.call(entry.object), true
}

// entries returns cairn's entries of an event.
func (c contents) entries(event string) []place {
	if list := c.doc.items("hooks", event); list != nil && list.array != nil {
		return c.hooks.entriesOf(*list, "")
	}
	return nil
}

// report compares the content of a file with the wanted content.
func (c contents) report() []Entry {
	var out []Entry
	add := func(name string, state State, why string) *Entry {
		out = append(out, Entry{File: c.path, Name: name, State: state, Why: why})
		return &out[len(out)-1]
	}
	if c.hooks != nil && c.err == nil {
		for _, w := range c.hooks.want {
			name := "hooks." + w.event
			ours := c.entries(w.event)
			if len(ours) == 0 {
				add(name, Missing, "")
				continue
			}
			why, unit := c.hooks.problems(w, ours[0].entry)
			if len(ours) > 1 {
				why = append(why, fmt.Sprintf("is there %d times", len(ours)))
			}
			if len(why) == 0 {
				add(name, Present, "")
				continue
			}
			add(name, Outdated, strings.Join(why, "; ")).WrongUnit = unit
		}
	}
	if c.status != nil && c.status.want && c.err == nil {
		switch got, ours := c.status.call(member(c.doc.object(), statusMember)); {
		case ours && got.program == c.status.program:
			add(statusMember, Present, "")
		case ours:
			add(statusMember, Outdated, "calls "+got.program)
		}
	}
	if c.text != "" && c.err == nil {
		add(c.textName(), c.textState(), "")
	}
	if c.server != nil && c.server.want && c.err == nil {
		state, why := c.serverState()
		add("mcpServers."+serverName, state, why)
	}
	return out
}

// problems returns the problems of an entry. wrongUnit is true if its timeout was written in a
// different unit from the host's.
func (h *hookSet) problems(w hook, entry *hujson.Object) (why []string, wrongUnit bool) {
	got, _ := ourCall(entry, h.windows)
	for _, f := range h.fieldsLike(w, entry) {
		v := member(entry, f.name)
		if v != nil && same(*v, f.value) {
			continue
		}
		switch f.name {
		case h.timeoutName():
			say, unit := h.timeoutProblem(w, v)
			why, wrongUnit = append(why, say), unit
		case "command":
			switch {
			case baseName(got.program) != baseName(h.program) || !samePath(got.program, h.program):
				why = append(why, "calls "+got.program)
			case slices.Equal(got.args, w.args):
				why = append(why, "is written in an older form")
			default:
				why = append(why, "has other options: "+strings.Join(got.args, " "))
			}
		case "args":
			if got.apart {
				why = append(why, "has other options: "+strings.Join(got.args, " "))
			}
		default:
			why = append(why, f.name+" is missing or wrong")
		}
	}
	if w.timeout == 0 && member(entry, h.timeoutName()) != nil {
		why = append(why, "has a timeout, which versions of this host read in different units")
	}
	return why, wrongUnit
}

func samePath(a, b string) bool {
	return strings.ReplaceAll(a, `\`, "/") == strings.ReplaceAll(b, `\`, "/")
}

func (h *hookSet) timeoutProblem(w hook, v *hujson.Value) (string, bool) {
	unit, wrong := "seconds", false
	if h.form.Millis {
		unit = "milliseconds"
	}
	if v == nil {
		return "has no timeout", false
	}
	l, _ := v.Value.(hujson.Literal)
	n := l.Float()
	if h.form.Millis {
		wrong = n < 1000
	} else {
		wrong = n >= 1000
	}
	return fmt.Sprintf("its timeout is %s, not %d %s", l, w.timeout, unit), wrong
}

func (c contents) serverState() (State, string) {
	switch got, there := c.serverCall(); {
	case !there:
		return Missing, ""
	case c.server.right(got):
		return Present, ""
	case c.server.bare(got) && got.program == c.server.program:
		return Outdated, "lacks " + strings.Join(c.server.args[1:], " ")
	case got.runsServer():
		return Outdated, "calls " + got.program
	}
	return Outdated, errForeign.Error()
}

// value returns the member of a file at a path of names, false if it does not exist.
func (c contents) value(path []string) (value any, set bool) {
	var all any = c.config
	if c.doc != nil {
		d := *c.doc
		d.root = d.root.Clone()
		d.root.Standardize()
		_ = json.Unmarshal(d.root.Pack(), &all) // an unreadable text has no members
	}
	for _, name := range path {
		members, _ := all.(map[string]any)
		if all, set = members[name]; !set {
			return nil, false
		}
	}
	return all, set
}

// programExists reports whether a program that an entry calls exists. The program is a path or a
// name on the PATH.
func (p Paths) programExists(program string) bool {
	if strings.ContainsAny(program, `/\`) {
		return isFile(program)
	}
	for _, dir := range filepath.SplitList(p.Path) {
		if isFile(filepath.Join(dir, program)) || p.Windows && isFile(filepath.Join(dir, program+".exe")) {
			return true
		}
	}
	return false
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
