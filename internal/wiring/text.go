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

// In some hosts cairn owns a whole file, such as a plugin or a hook's script. In others it owns
// a block in a text for the model. Both contain a line that names their author and the program
// they call. cairn recognises them by that line.

const (
	writtenMark = "written by `cairn init`"
	blockStart  = "<!-- cairn: "
	blockEnd    = "<!-- cairn: end -->"
)

// errNotCairns is the error for an existing file that cairn would have to own as a whole. The
// file is not changed.
var errNotCairns = errors.New("the file is not cairn's")

// fill replaces the placeholders in a file's text. {{head}} is the line that names the author.
// {{program}} is the path of the hook program as a JSON string, and {{quoted}} is the same path
// quoted for bash. {{assist}} is true or false.
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

// writtenBy returns the call in a text that init wrote, false for any other text.
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

// editScript returns cairn's file in its wanted form. It returns no text if the file should not
// exist.
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

// editBlock returns a text with cairn's block in its wanted form. A new block is added at the
// end. was is the text before the first addition of a block, nil if unknown.
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

// blockIn returns the start and end of cairn's block in a text, including the line break. Both
// are -1 if there is no block.
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

// textName returns the name of cairn's text in reports.
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
