package wiring

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"cairn/internal/harness/harnesses"
)

func errShape(what, kind string) error { return fmt.Errorf("%s is not %s", what, kind) }

// call is the program and arguments of an entry.
type call struct {
	program string
	args    []string
	apart   bool // the arguments are in a separate list
}

// ourCall returns the call of an entry, and true if it is cairn's hook.
func ourCall(entry *hujson.Object, windows bool) (call, bool) {
	command := member(entry, "command")
	if command == nil {
		return call{}, false
	}
	c := call{program: text(*command)}
	if c.args, c.apart = texts(member(entry, "args")); !c.apart {
		words := splitLine(c.program, windows)
		if len(words) == 0 {
			return call{}, false
		}
		c.program, c.args = words[0], words[1:]
	}
	if len(c.args) == 0 || c.args[0] != "record" {
		return call{}, false
	}
	named := len(c.args) > 2 && c.args[1] == "--from" && isName(c.args[2])
	return c, named || strings.EqualFold(baseName(c.program), serverName)
}

// isName reports whether --from accepts the name.
func isName(name string) bool {
	_, ok := harnesses.Of(name)
	return ok
}

// place is the position of one of cairn's entries.
type place struct {
	entry  *hujson.Object
	list   items // the list that contains it
	index  int
	group  int // index in the event's list; -1 if that list contains the entry itself
	indent string
}

// entriesOf returns cairn's entries of an event, in order.
func (h *hookSet) entriesOf(event items, outer string) []place {
	var out []place
	find := func(list items, group int, outer string) {
		for i := range list.len() {
			o, ok := list.value(i).Value.(*hujson.Object)
			if !ok {
				continue
			}
			if _, ours := ourCall(o, h.windows); ours {
				out = append(out, place{o, list, i, group, indentOf(list, i, outer)})
			}
		}
	}
	if h.form.Flat {
		find(event, -1, outer)
		return out
	}
	for g := range event.len() {
		group, ok := event.value(g).Value.(*hujson.Object)
		if !ok {
			continue
		}
		inner := indentOf(event, g, outer)
		if list, ok := itemsOf(member(group, "hooks")); ok && list.array != nil {
			find(list, g, inner)
		}
	}
	return out
}

// indentOf returns the indentation of an item's line.
func indentOf(c items, i int, outer string) string {
	if before := string(*c.before(i)); strings.Contains(before, "\n") {
		return indentation(before)
	}
	return outer
}

// editHooks sets the hooks of a file to the wanted content. It corrects cairn's entries in
// place, adds missing ones after the others and removes unwanted ones. was is the text before
// the first addition, nil if unknown.
func (d *document) editHooks(h *hookSet, was *document) error {
	root := items{object: d.object()}
	value := member(root.object, "hooks")
	if value == nil {
		if len(h.want) == 0 {
			return nil
		}
		return d.style.add(root, "hooks", h.all(), "")
	}
	hooks, ok := itemsOf(value)
	if !ok || hooks.object == nil {
		if len(h.want) == 0 {
			return nil
		}
		return errShape("hooks", "an object")
	}
	outer := d.indentOfMember(root, "hooks", "")
	dropped, err := d.editEvents(h, hooks, outer, was)
	if err != nil {
		return err
	}
	for _, w := range h.want {
		if member(hooks.object, w.event) == nil {
			if err := d.style.add(hooks, w.event, h.event(w), outer); err != nil {
				return err
			}
		}
	}
	if dropped && hooks.len() == 0 && was.items("hooks") == nil {
		d.dropMember(root, "hooks", was)
	}
	return nil
}

// editEvents does the work of editHooks for the existing events. dropped is true if it removed
// an event.
func (d *document) editEvents(h *hookSet, hooks items, outer string, was *document) (dropped bool, err error) {
	for i := hooks.len() - 1; i >= 0; i-- {
		event := text(hooks.object.Members[i].Name)
		if member(hooks.object, event) != hooks.value(i) {
			continue
		}
		emptied, err := d.editEvent(h, hooks, i, event, outer, was)
		if err != nil {
			return dropped, err
		}
		if emptied && was.items("hooks", event) == nil {
			d.style.drop(hooks, i, was.items("hooks"))
			dropped = true
		}
	}
	return dropped, nil
}

// editEvent does the work of editHooks for one event. emptied is true if it removed the last
// entry.
func (d *document) editEvent(h *hookSet, hooks items, i int, name, outer string, was *document) (emptied bool, err error) {
	w := slices.IndexFunc(h.want, func(w hook) bool { return w.event == name })
	event, ok := itemsOf(hooks.value(i))
	if !ok || event.array == nil {
		if w >= 0 {
			return false, errShape("hooks."+name, "a list")
		}
		return false, nil
	}
	line := indentOf(hooks, i, outer)
	ours := h.entriesOf(event, line)
	if w >= 0 && len(ours) == 0 {
		return false, d.style.add(event, "", h.entry(h.want[w]), line)
	}
	first := 0
	if w >= 0 {
		if err := d.correct(h, h.want[w], ours[0]); err != nil {
			return false, err
		}
		first = 1
	}
	for _, p := range slices.Backward(ours[first:]) {
		wasEvent := was.items("hooks", name)
		if p.group < 0 {
			d.style.drop(p.list, p.index, wasEvent)
		} else if d.style.drop(p.list, p.index, nil); p.list.len() == 0 {
			d.style.drop(event, p.group, wasEvent)
		}
	}
	return len(ours) > first && event.len() == 0, nil
}

// all returns the complete value of "hooks".
func (h *hookSet) all() []field {
	var out []field
	for _, w := range h.want {
		out = append(out, field{w.event, h.event(w)})
	}
	return out
}

func (h *hookSet) event(w hook) []any { return []any{h.entry(w)} }

// entry returns an addition to an event's list.
func (h *hookSet) entry(w hook) []field {
	var fields []field
	if h.form.Named {
		fields = append(fields, field{"name", serverName})
	}
	fields = append(fields, h.fields(w, h.exec == apart)...)
	if h.form.Flat {
		return fields
	}
	group := []field{{"hooks", []any{fields}}}
	if w.matcher != "" {
		group = append([]field{{"matcher", w.matcher}}, group...)
	}
	return group
}

// fields returns the members of an entry that init controls.
func (h *hookSet) fields(w hook, apart bool) []field {
	var fields []field
	if h.form.Typed {
		fields = append(fields, field{"type", "command"})
	}
	if apart {
		fields = append(fields, field{"command", h.program}, field{"args", w.args})
	} else {
		fields = append(fields, field{"command", h.shell.line(h.program, w.args)})
	}
	if w.timeout > 0 {
		fields = append(fields, field{h.timeoutName(), w.timeout})
	}
	if h.form.Quiet {
		fields = append(fields, field{"show_output", false})
	}
	if h.form.Flat && w.matcher != "" {
		fields = append(fields, field{"matcher", w.matcher})
	}
	return fields
}

// timeoutName returns the name of an entry's timeout member.
func (h *hookSet) timeoutName() string { return cmp.Or(h.form.Timeout, "timeout") }

// fieldsLike returns the wanted fields. It keeps the form of the existing entry if both forms
// are possible.
func (h *hookSet) fieldsLike(w hook, entry *hujson.Object) []field {
	_, isApart := texts(member(entry, "args"))
	return h.fields(w, h.exec == apart || h.exec == either && isApart)
}

// correct sets the wanted fields of one of cairn's entries and keeps its other fields.
func (d *document) correct(h *hookSet, w hook, p place) error {
	want := h.fieldsLike(w, p.entry)
	for _, f := range want {
		if err := d.set(p.entry, f, p.indent); err != nil {
			return err
		}
	}
	for _, name := range []string{"args", h.timeoutName()} {
		wanted := slices.ContainsFunc(want, func(f field) bool { return f.name == name })
		if !wanted && member(p.entry, name) != nil {
			d.dropMember(items{object: p.entry}, name, nil)
		}
	}
	return nil
}

// set sets a member's value if it differs.
func (d *document) set(o *hujson.Object, f field, outer string) error {
	v := member(o, f.name)
	if v == nil {
		return d.style.add(items{object: o}, f.name, f.value, outer)
	}
	if same(*v, f.value) {
		return nil
	}
	parsed, err := hujson.Parse([]byte(d.style.render(f.value, outer)))
	v.Value = parsed.Value
	return err
}

func same(v hujson.Value, want any) bool {
	l, _ := v.Value.(hujson.Literal)
	switch want := want.(type) {
	case string:
		return l.Kind() == '"' && l.String() == want
	case int:
		return l.Kind() == '0' && l.Float() == float64(want)
	case bool:
		return l.Kind() == 't' && want || l.Kind() == 'f' && !want
	case []string:
		got, ok := texts(&v)
		return ok && slices.Equal(got, want)
	}
	return false
}

func (d *document) indentOfMember(c items, name, outer string) string {
	for i := range c.len() {
		if c.value(i) == member(c.object, name) {
			return indentOf(c, i, outer)
		}
	}
	return outer
}

// dropMember removes a member of the top level or of an entry.
func (d *document) dropMember(c items, name string, was *document) {
	d.style.dropNamed(c, name, was.items())
}

// dropNamed removes a member of an object. If several have the name, it removes the last one,
// which counts.
func (s style) dropNamed(c items, name string, was *items) {
	for i := range c.len() {
		if c.value(i) == member(c.object, name) {
			s.drop(c, i, was)
			return
		}
	}
}

// items returns the members at a path of names. It returns nil if d is nil or has no members
// there.
func (d *document) items(path ...string) *items {
	if d == nil {
		return nil
	}
	v := &d.root
	for _, name := range path {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil
		}
		if v = member(o, name); v == nil {
			return nil
		}
	}
	c, ok := itemsOf(v)
	if !ok {
		return nil
	}
	return &c
}
