package wiring

import (
	"bytes"

	"cairn/internal/harness"
)

// edited returns a file's text with the wanted content. A text that already has it is returned
// unchanged.
func (s settings) edited(old []byte) ([]byte, error) {
	return s.apply(old, nil)
}

// stripped returns a file's text without cairn's entries. was is the text before the first
// addition, nil if unknown. It shows which empty lists were the user's and how they were spaced.
// With it, stripped reverses edited byte for byte.
func (s settings) stripped(old, was []byte) ([]byte, error) {
	if s.hooks != nil {
		none := *s.hooks
		none.want = nil
		s.hooks = &none
	}
	if s.server != nil {
		none := *s.server
		none.want = false
		s.server = &none
	}
	if s.status != nil {
		none := *s.status
		none.want = false
		s.status = &none
	}
	s.text = ""
	return s.apply(old, was)
}

func (s settings) apply(old, was []byte) ([]byte, error) {
	switch s.format {
	case harness.TOML:
		return editTOML(s.path, old, s.server, was)
	case harness.Block:
		return s.editBlock(old, was), nil
	case harness.Script:
		return s.editScript(old)
	}
	d, err := parseDocument(old)
	if err != nil {
		return nil, err
	}
	var before *document
	if was != nil {
		if before, err = parseDocument(was); err != nil {
			before = nil // the earlier text is unknown then
		}
	}
	if s.hooks != nil {
		if err := d.editVersion(s.hooks, before); err != nil {
			return nil, err
		}
		if err := d.editHooks(s.hooks, before); err != nil {
			return nil, err
		}
	}
	if s.server != nil {
		if err := d.editServer(s.server, before); err != nil {
			return nil, err
		}
	}
	if s.status != nil {
		if err := d.editStatusLine(s.status, before); err != nil {
			return nil, err
		}
	}
	empty := len(d.object().Members) == 0
	switch {
	case empty && d.blank:
		return old, nil
	case empty && before != nil && before.blank:
		return was, nil
	}
	return d.pack(), nil
}

// editVersion adds the version to a file of Cursor's, or removes it if the file had none before.
func (d *document) editVersion(h *hookSet, was *document) error {
	root := items{object: d.object()}
	has := member(root.object, "version") != nil
	switch {
	case h.form.Version && len(h.want) > 0 && !has:
		return d.style.add(root, "version", 1, "")
	case h.form.Version && len(h.want) == 0 && has && was != nil && member(was.object(), "version") == nil:
		d.dropMember(root, "version", nil)
	}
	return nil
}

// nothingLeft reports whether a text that init created has no content left.
func (s settings) nothingLeft(content []byte) bool {
	if s.format != harness.JSON {
		return len(bytes.TrimSpace(content)) == 0
	}
	d, err := parseDocument(content)
	if err != nil {
		return false
	}
	for _, m := range d.object().Members {
		if !(s.hooks != nil && s.hooks.form.Version && text(m.Name) == "version") {
			return false
		}
	}
	return !hasComment(d.object().AfterExtra)
}
