package wiring

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/harness"
)

// Some hosts take a file that is cairn's as a whole, a plugin or a hook's script, or a
// text for the model in which a block is cairn's. Either has a line that says who wrote
// it and what it calls, by which it is recognised.

const (
	writtenMark = "written by `cairn init`"
	blockStart  = "<!-- cairn: "
	blockEnd    = "<!-- cairn: end -->"
)

// errNotCairns is why a file is left alone that should be cairn's as a whole.
var errNotCairns = errors.New("the file is not cairn's")

// fill returns the text of a file with what only this machine knows: {{head}} is the line
// that says who wrote it, {{program}} the path of the program that hooks call as a JSON string, {{quoted}} as bash
// takes it, {{assist}} true or false.
func (p Paths) fill(f harness.File, assist bool) string {
	program := style{}.render(p.hook(), "")
	args := "record"
	if assist {
		args += " --assist"
	}
	bash := posix
	if p.Windows {
		bash = gitBash
	}
	return strings.NewReplacer(
		"{{quoted}}", bash.quoted(p.hook()),
		"{{head}}", writtenMark+" for "+program+" "+args+"; `cairn uninstall` removes it",
		"{{program}}", program, "{{assist}}", map[bool]string{true: "true", false: "false"}[assist],
	).Replace(f.Text)
}

// writtenBy is what a text that init wrote calls; false for any other text.
func writtenBy(text []byte) (call, bool) {
	m := regexp.MustCompile("written by `cairn init` for (\"(?:[^\"\\\\\n]|\\\\.)*\") (record(?: --assist)?);").FindSubmatch(text)
	if m == nil {
		return call{}, false
	}
	c := call{args: strings.Fields(string(m[2])), apart: true}
	return c, json.Unmarshal(m[1], &c.program) == nil
}

func isOurs(text []byte) bool {
	_, ok := writtenBy(text)
	return ok
}

// editScript returns a file of ours in its wanted form, nothing if there is to be none.
func (s settings) editScript(old []byte) ([]byte, error) {
	switch {
	case len(bytes.TrimSpace(old)) > 0 && !isOurs(old):
		if s.text == "" {
			return old, nil
		}
		return nil, errNotCairns
	case s.text == "":
		return nil, nil
	}
	return []byte(s.text), nil
}

// editBlock returns a text with our block in its wanted form, at the end if it was not there.
// was is the text before there was one, nil if that is not known.
func (s settings) editBlock(old, was []byte) []byte {
	start, end := blockIn(old)
	nl := newlineOf(old)
	if start >= 0 {
		nl = newlineOf(old[start:end])
	}
	block := strings.ReplaceAll(s.text, "\n", nl)
	switch {
	case start < 0 && s.text == "":
		return old
	case start < 0:
		out := bytes.Clone(old)
		if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, nl...)
		}
		if len(out) > 0 {
			out = append(out, nl...)
		}
		return append(out, block...)
	case s.text != "":
		return slices.Concat(old[:start], []byte(block), old[end:])
	}
	head := bytes.TrimSuffix(bytes.TrimSuffix(old[:start], []byte("\n")), []byte("\r"))
	out := slices.Concat(head, old[end:])
	if was != nil && sameButEnd(out, was) {
		return was
	}
	return out
}

// blockIn is where our block begins and ends in a text, line break included; -1 if it
// has none.
func blockIn(text []byte) (start, end int) {
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(blockStart+writtenMark))
		if i < 0 {
			return -1, -1
		}
		start = at + i
		j := bytes.Index(text[start:], []byte(blockEnd))
		if j < 0 {
			return -1, -1
		}
		end = start + j + len(blockEnd)
		if start == 0 || text[start-1] == '\n' {
			break
		}
		at = end
	}
	for _, nl := range []string{"\r\n", "\n"} {
		if bytes.HasPrefix(text[end:], []byte(nl)) {
			return start, end + len(nl)
		}
	}
	return start, end
}

// textName is how the text of ours in a file is called in reports.
func (c contents) textName() string {
	if c.format == harness.Block {
		return "rules"
	}
	return filepath.Base(c.path)
}

func (c contents) textState() State {
	want, err := c.edited(c.raw)
	switch {
	case c.format == harness.Block && !isOurs(c.raw), len(c.raw) == 0:
		return Missing
	case err != nil || !bytes.Equal(want, c.raw):
		return Outdated
	}
	return Present
}
