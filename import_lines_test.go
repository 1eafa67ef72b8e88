package cairn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/record"

	"pgregory.net/rapid"
)

// storied returns a home with rows and with the records of two projects, each of which has
// an R001. The records have trees, branching sessions, a conflict, saves, ends and
// restarts.
func storied(t testing.TB) home {
	t.Helper()
	now := clockAt(1_770_000_000)
	h := newHome(t, now, "")
	for _, name := range []string{"shop", "works"} {
		dir := filepath.Join(h.dir, name)
		put(t, filepath.Join(dir, ".git", "HEAD"), "ref: refs/heads/main\n", 0o600)
		for _, s := range []string{"r1", "s1"} {
			h.event(observation.Event{Kind: observation.Prompt, Session: s + name, Cwd: dir, Source: "UserPromptSubmit", Text: "tidy the " + name, PromptID: "p"})
			h.event(observation.Event{Kind: observation.Tool, Session: s + name, Cwd: dir, Source: "PostToolUse", PromptID: "p", Calls: []observation.Call{
				{ID: "c" + s + name, Tool: "Bash", Action: observation.Shell, Command: "make " + name},
			}})
		}
		h.tell(name)
	}
	return h
}

// tell creates a project's records. Some of its commands must be refused or conflict.
func (h home) tell(project string) {
	h.t.Helper()
	ctx, book := h.t.Context(), h.book()
	as := func(session string) record.Caller {
		return record.Caller{ProjectID: project, SessionID: session + project}
	}
	fine := func(err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
	}
	create := func(session, parent string, related ...string) {
		h.t.Helper()
		a := record.CreateArgs{Caller: as(session), Type: "note", Title: "about " + project, Related: related, Metadata: json.RawMessage(`{"<b>":[1.50]}`)}
		if parent != "" {
			a.ParentID = &parent
		}
		_, err := book.Create(ctx, a)
		fine(err)
	}
	update := func(session, id, body string, force bool) (conflict bool) {
		h.t.Helper()
		out, err := book.Update(ctx, record.UpdateArgs{Caller: as(session), ID: id, Body: &body, Force: force})
		fine(err)
		return out.Conflict != nil
	}
	activate := func(session, id string, override bool) {
		h.t.Helper()
		_, err := book.Activate(ctx, record.ActivateArgs{Caller: as(session), ID: id, Override: override})
		fine(err)
	}
	move := func(session, id string, to record.State, reason, by string) {
		h.t.Helper()
		_, err := book.Transition(ctx, record.TransitionArgs{Caller: as(session), ID: id, ToState: to, Reason: reason, ResolvedBy: by})
		fine(err)
	}
	create("r1", "")
	create("r1", "R001", "R001")
	activate("r2", "R002", false)
	activate("r2", "R001", true)
	update("r1", "R002", "one\n", false)
	if !update("r2", "R002", "two\n", false) {
		h.t.Fatal("no conflict")
	}
	update("r2", "R002", "two\n", true)
	_, err := book.Save(ctx, record.SaveArgs{Caller: as("r2"), Summary: "half way"})
	fine(err)
	create("r2", "R002", "R001", "R002")
	move("r2", "R001", record.Later, "not now", "")
	move("r2", "R003", record.Resolved, "", "R002")
	_, err = book.Close(ctx, record.SaveArgs{Caller: as("r1")})
	fine(err)
	activate("r1", "R003", false)
	activate("r1", "R003", false)
	_, err = book.Sync(ctx, record.SyncArgs{Caller: as("r1")})
	fine(err)
	move("r1", "R003", record.Open, "", "")
}

// mangler changes the lines of an export as users and accidents do.
type mangler struct {
	*rapid.T
	lines []string
}

func (m *mangler) line(label string) int { return rapid.IntRange(0, len(m.lines)-1).Draw(m.T, label) }

func (m *mangler) once() {
	if len(m.lines) == 0 {
		return
	}
	switch rapid.IntRange(0, 8).Draw(m.T, "what is done") {
	case 0:
		i := m.line("gone")
		m.lines = slices.Delete(m.lines, i, i+1)
	case 1:
		i := m.line("from")
		m.lines = slices.Delete(m.lines, i, rapid.IntRange(i, len(m.lines)).Draw(m.T, "to"))
	case 2, 3:
		sign := pick(m.T, "all that say", record.SessionStarted, record.SessionClosed, `"type":"activation"`, record.SessionSaved, `"kind":"session"`,
			`"kind":"observation"`, `"session":"r1shop"`, `"project":"works"`, `"kind":"record_event"`, `"kind":"record"`, `"id":"R003"`)
		m.lines = slices.DeleteFunc(m.lines, func(l string) bool { return strings.Contains(l, sign) })
	case 4:
		i, j := m.line("this"), m.line("that")
		m.lines[i], m.lines[j] = m.lines[j], m.lines[i]
	case 5:
		i, j := m.line("this"), m.line("and its neighbour")
		l := m.lines[i]
		m.lines = slices.Insert(slices.Delete(m.lines, i, i+1), min(j, len(m.lines)-1), l)
	case 6:
		i := m.line("twice")
		m.lines = slices.Insert(m.lines, i, m.lines[i])
	case 7:
		m.number(m.line("a number of"))
	default:
		m.lines = rapid.Permutation(m.lines).Draw(m.T, "order")
	}
}

// number changes one number or id of a line.
func (m *mangler) number(i int) {
	spots := regexp.MustCompile(`"[a-z_]+":[0-9]+|R00[0-9]`).FindAllStringIndex(m.lines[i], -1)
	if len(spots) == 0 {
		return
	}
	at := rapid.SampledFrom(spots).Draw(m.T, "number")
	l := m.lines[i]
	old := l[at[0]:at[1]]
	value := pick(m.T, "value", "R001", "R002", "R004", "R999")
	if name, _, ok := strings.Cut(old, ":"); ok {
		value = name + ":" + pick(m.T, "value", "0", "1", "2", "3", "7", "-1", "1770000000000000001", "9223372036854775807")
	}
	m.lines[i] = l[:at[0]] + value + l[at[1]:]
}

// mend renumbers ticks and versions, as anyone who removes lines must do.
func (m *mangler) mend() {
	ticks, versions := map[string]int{}, map[string]int{}
	for i, l := range m.lines {
		var whole, doc map[string]json.RawMessage
		if json.Unmarshal([]byte(l), &whole) != nil || whole["doc"] == nil || json.Unmarshal(whole["doc"], &doc) != nil {
			continue
		}
		project := string(whole["project"])
		set := func(name string, n int) { doc[name] = json.RawMessage(fmt.Sprint(n)) }
		if doc["tick"] != nil {
			ticks[project]++
			set("tick", ticks[project])
		}
		set("last_sync_tick", ticks[project])
		if doc["version"] != nil {
			record := project + string(doc["id"])
			versions[record]++
			set("version", versions[record])
			set("base_version", versions[record])
		}
		text, err := json.Marshal(doc)
		if err != nil {
			m.Fatal(err)
		}
		whole["doc"] = text
		if text, err = json.Marshal(whole); err != nil {
			m.Fatal(err)
		}
		// Its kind is the first field, as in an export.
		rest := strings.Replace(string(text), `"kind":`+string(whole["kind"])+",", "", 1)
		m.lines[i] = `{"kind":` + string(whole["kind"]) + "," + strings.TrimPrefix(rest, "{")
	}
}

// TestAnyLinesOfAnExportAreTakenSoundlyOrRefusedByName removes, moves, repeats and alters
// lines of an export. An accepted export leaves an intact store, whose own export is
// accepted too. A refused export changes nothing, and the error names the line.
func TestAnyLinesOfAnExportAreTakenSoundlyOrRefusedByName(t *testing.T) {
	t.Parallel()
	lines := body(storied(t).export(""))
	runs, taken, refused, failed := 0, 0, 0, false
	most := min(3*maxHistories(), 100)
	rapid.Check(t, func(r *rapid.T) {
		defer func() { failed = failed || r.Failed() }()
		if runs++; runs > most && !failed {
			return
		}
		m := &mangler{T: r, lines: slices.Clone(lines)}
		for range rapid.IntRange(0, 3).Draw(r, "times") {
			m.once()
		}
		if rapid.IntRange(0, 3).Draw(r, "mended") > 0 {
			m.mend()
		}
		target := newHome(t, clockAt(1_780_000_000), "")
		text := sealed(t, m.lines...)
		_, err := target.restore(text)
		if err != nil {
			refused++
			f := fault.As(err)
			if f.Kind != fault.Invalid && f.Kind != fault.Unavailable || !regexp.MustCompile(`^line [0-9]+: .+`).MatchString(f.Message) {
				r.Fatalf("%v\n%s", err, text)
			}
			if target.head() != 0 {
				r.Fatalf("something of it was stored: %v\n%s", err, text)
			}
			return
		}
		taken++
		target.sound()
		own := target.export("")
		if again := target.mustRestore(text); again.Records.Added+again.Rows.Added != 0 || !bytes.Equal(target.export(""), own) {
			r.Fatalf("the second time %+v\n%s", again, text)
		}
		other := newHome(t, clockAt(1_780_000_000), "")
		other.mustRestore(own)
		if again := other.export(""); !bytes.Equal(again, own) {
			r.Fatalf("%s\n%s", firstDifference(own, again), text)
		}
		if a, b := target.answers(), other.answers(); a != b {
			r.Fatalf("the copy answers otherwise\n%s\n%s", firstDifference([]byte(a), []byte(b)), text)
		}
	})
	if !t.Failed() && (taken < most/6 || refused < most/6) {
		t.Errorf("%d were taken and %d refused", taken, refused)
	}
}
