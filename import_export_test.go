package cairn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/copies"
	"cairn/internal/exchange"
	"cairn/internal/fault"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/forget"
	"cairn/internal/observation/search"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/store"
)

// sealed returns an export of lines, with a matching header and trailer.
func sealed(t testing.TB, lines ...string) []byte {
	t.Helper()
	counts := map[string]int{}
	for _, l := range lines {
		var v struct{ Kind string }
		if json.Unmarshal([]byte(l), &v) == nil {
			counts[v.Kind]++
		}
	}
	head, err := json.Marshal(exchange.Header{Version: 1, Cairn: "test", Counts: counts, Projects: []string{"shop"}})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(append([]string{string(head)}, lines...), "\n") + "\n"
	sum := sha256.Sum256([]byte(text))
	return fmt.Appendf([]byte(text), `{"kind":"end","lines":%d,"sha256":"%s"}`+"\n", len(lines)+1, hex.EncodeToString(sum[:]))
}

// body returns the lines of an export between header and trailer.
func body(text []byte) []string {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return lines[1 : len(lines)-1]
}

func clockAt(at int64) *atomic.Int64 {
	now := &atomic.Int64{}
	now.Store(at)
	return now
}

// busy returns a home whose shop has sessions with rows of many kinds.
func busy(t testing.TB, now *atomic.Int64) (h home, shop string) {
	t.Helper()
	h = newHome(t, now, "")
	shop = filepath.Join(h.dir, "shop")
	put(t, filepath.Join(shop, ".git", "HEAD"), "ref: refs/heads/main\n", 0o600)
	put(t, filepath.Join(shop, ".git", "config"), "[remote \"origin\"]\n\turl = https://example.org/shop.git\n", 0o600) // the same repository at any path
	for i := range 40 {
		now.Add(1)
		s := sessionNames[i%3]
		h.event(observation.Event{Kind: observation.Prompt, Session: s, Cwd: shop, Source: "UserPromptSubmit", Text: fmt.Sprint("tidy page ", i), PromptID: fmt.Sprint("p", i)})
		h.event(observation.Event{Kind: observation.Tool, Session: s, Cwd: shop, Source: "PostToolUse", PromptID: fmt.Sprint("p", i), Calls: []observation.Call{
			{ID: fmt.Sprint("c", i), Tool: "Bash", Action: observation.Shell, Command: "make page"},
		}})
		h.event(observation.Event{Kind: observation.Tool, Session: s, Cwd: shop, Source: "PostToolUse", Calls: []observation.Call{
			{Tool: "Bash", Action: observation.Shell, Command: "make page"}, // without an id, like other rows of the same second
		}})
		h.event(observation.Event{Kind: observation.Message, Session: s, Cwd: shop, Source: "Stop", Text: fmt.Sprint("done with ", i), Role: "turn", TurnEnds: true})
	}
	return h, shop
}

func TestAnImportThatWasStoppedAnywhereGoesOnAndEndsEqual(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, _ := busy(t, now)
	for range 12 { // more lines than fit into a transaction
		for i := range 40 {
			source.event(observation.Event{Kind: observation.Tool, Session: "s1", Cwd: source.dir + "/shop", Source: "PostToolUse", Calls: []observation.Call{
				{Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint("make ", i)},
			}})
		}
	}
	whole := source.export("")
	target := newHome(t, now, "")
	path := filepath.Join(target.dir, "x.jsonl")
	put(t, path, string(whole), 0o600)
	stops := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := target.Import(ctx, ImportArgs{Paths: []string{path}, LineProgress: func(done, _ int) { cancel() }})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		target.sound()
		if stops++; stops > 3 {
			target.mustRestore(whole)
			break
		}
	}
	if stops == 0 {
		t.Fatal("no import was stopped")
	}
	if again := target.export(""); !bytes.Equal(again, whole) {
		t.Errorf("after %d stops\n%s", stops, firstDifference(whole, again))
	}
}

func TestIdsThatAreTakenAreGivenAnewAndRelationsHold(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, _ := busy(t, now)
	target := newHome(t, now, "")
	works := filepath.Join(target.dir, "works")
	put(t, filepath.Join(works, ".git", "HEAD"), "", 0o600)
	for i := range 7 {
		target.event(observation.Event{Kind: observation.Prompt, Session: "other", Cwd: works, Source: "UserPromptSubmit", Text: fmt.Sprint("mend pipe ", i)})
	}
	if _, err := target.Purge(t.Context(), forget.PurgeArgs{IDs: []int64{6, 7}, Confirm: true}); err != nil {
		t.Fatal(err)
	}
	one := source.export("shop")
	r := target.mustRestore(one)
	if r.Rows.Added != 160 || r.Rows.NewIDs != 7 || r.Rows.Sessions != 3 || r.New != 1 {
		t.Errorf("%+v", r)
	}
	if r = target.mustRestore(one); r.Rows.Added != 0 || r.Rows.Known != 160 {
		t.Errorf("the second time %+v", r)
	}
	j, err := target.Observations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessionNames {
		trace, err := browse.TraceSession(t.Context(), j, s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(trace)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), `"make page"`); n < 13 {
			t.Errorf("%s: %d calls", s, n)
		}
	}
	all, err := search.Search(t.Context(), j, search.SearchArgs{Query: "page", ObsType: "command", Limit: 100})
	if err != nil || len(all) != 80 {
		t.Fatalf("%d %v", len(all), err)
	}
	ids := []int64{}
	for _, hit := range all {
		ids = append(ids, hit.ID)
	}
	rows, err := browse.Get(t.Context(), j, ids[:50])
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.PromptID == nil {
			t.Errorf("row %d has lost its prompt", row.ID)
		}
	}
}

func TestWhatWasPurgedStaysOutUnlessItIsAskedFor(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, shop := busy(t, now)
	if _, err := source.Mark(t.Context(), capture.MarkArgs{Text: "a private note", Session: "s1", Cwd: shop}); err != nil {
		t.Fatal(err)
	}
	before := source.export("shop")
	for _, a := range []forget.PurgeArgs{
		{Session: "s2"}, {Type: "marker"}, {Search: `"tidy page 3"`}, {Type: "agent_message", Session: "s3"},
	} {
		a.Confirm = true
		if done, err := source.Purge(t.Context(), a); err != nil || done.Rows == 0 {
			t.Fatalf("%+v %v", done, err)
		}
	}
	after := source.export("shop")
	r := source.mustRestore(before)
	if r.Rows.Added != 0 || r.Rows.Purged == 0 || !bytes.Equal(source.export("shop"), after) {
		t.Errorf("it came back: %+v\n%s", r.Rows, firstDifference(after, source.export("shop")))
	}
	// The export contains the purge. Purged text that the other machine still has is not
	// restored there.
	target := newHome(t, now, "")
	target.mustRestore(after)
	r = target.mustRestore(before)
	if r.Rows.Added != 0 || !bytes.Equal(target.export("shop"), after) {
		t.Errorf("it came back elsewhere: %+v", r.Rows)
	}
	// This also holds if something else was purged before, with another salt.
	third, _ := busy(t, clockAt(1_780_000_000))
	if _, err := third.Purge(t.Context(), forget.PurgeArgs{Confirm: true, Session: "s1"}); err != nil {
		t.Fatal(err)
	}
	third.mustRestore(after)
	if r = third.mustRestore(before); r.Rows.Added != 0 {
		t.Errorf("it came back beside another salt: %+v", r.Rows)
	}
	path := filepath.Join(target.dir, "x.jsonl")
	put(t, path, string(before), 0o600)
	report, err := target.Import(t.Context(), ImportArgs{Paths: []string{path}, IncludePurged: true})
	if err != nil || report.Restored[0].Rows.Added == 0 || report.Restored[0].Rows.Purged != 0 {
		t.Errorf("%+v %v", report.Restored, err)
	}
	target.sound()
}

func TestADryRunSaysWhatItWouldDoAndDoesNothing(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, _ := busy(t, now)
	target := newHome(t, now, "")
	path := filepath.Join(target.dir, "x.jsonl")
	put(t, path, string(source.export("shop")), 0o600)
	r, err := target.Import(t.Context(), ImportArgs{Paths: []string{path}, DryRun: true})
	if err != nil || r.Restored[0].Rows.Added != 160 {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := target.Export(t.Context(), &bytes.Buffer{}, copies.ExportArgs{All: true}); !fault.HasCode(err, store.CodeMissing) {
		t.Errorf("a store was made: %v", err)
	}
	if _, err := target.Import(t.Context(), ImportArgs{Paths: []string{path}, Project: "shop"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a part: %v", err)
	}
}

// TestASecretInAnOlderExportIsRedacted imports an export from before a rule existed.
func TestASecretInAnOlderExportIsRedacted(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, _ := busy(t, now)
	secret := "ghp_" + strings.Repeat("aB3dE5", 6)
	text := strings.ReplaceAll(strings.Join(body(source.export("shop")), "\n"), "page 7", "page "+secret)
	text = strings.ReplaceAll(text, "done with 7", "done with "+secret)
	target := newHome(t, now, "")
	r := target.mustRestore(sealed(t, strings.Split(text, "\n")...))
	if out := target.export(""); r.Rows.Redacted < 2 || bytes.Contains(out, []byte(secret)) || !bytes.Contains(out, []byte("[REDACTED")) {
		t.Errorf("%+v", r.Rows)
	}
}

func TestHostileLinesLeaveNoTrace(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, _ := busy(t, now)
	lines := body(source.export("shop"))
	const row = 2
	edit := func(n int, old, text string) []string {
		out := append([]string(nil), lines...)
		if !strings.Contains(out[n], old) {
			t.Fatalf("%q is not in %s", old, out[n])
		}
		out[n] = strings.Replace(out[n], old, text, 1)
		return out
	}
	add := func(line string) []string { return append(append([]string(nil), lines...), line) }
	for name, c := range map[string]struct {
		lines []string
		says  string
	}{
		"a newer kind":               {add(`{"kind":"memory","id":1}`), `this cairn knows no lines of kind "memory"`},
		"a newer field":              {edit(row, `"id"`, `"mood":1,"id"`), "does not know its field"},
		"a newer type":               {edit(row, "user_prompt", "telepathy"), `no rows are of type "telepathy"`},
		"an unknown project":         {edit(row, `"project":"shop"`, `"project":"nothing"`), "a project that the file does not have"},
		"an unknown session":         {edit(row, `"session":"s1"`, `"session":"s9"`), "its session is not the session before it"},
		"a session twice":            {add(lines[1]), "this session occurs twice"},
		"a project twice":            {append([]string{lines[0]}, lines...), "this project occurs twice"},
		"a project behind":           {add(strings.Replace(lines[0], `"id":"shop"`, `"id":"later"`, 1)), "must not be at this position"},
		"merged into nothing":        {append([]string{strings.Replace(lines[0], `"id":"shop"`, `"id":"gone","merged_into":"shop"`, 1)}, lines...), "merged into a project"},
		"a session without project":  {edit(1, `"project":"shop"`, `"project":"nothing"`), "a project that the file does not have"},
		"a prompt that is no one's":  {add(`{"kind":"observation","id":900,"timestamp":1,"session":"s3","project":"shop","obs_type":"command","source_event":"x","content":"y","prompt_id":5000}`), "refers to a prompt"},
		"a row before its session":   {append([]string{lines[0], lines[row]}, lines[1:]...), "its session is not the session before it"},
		"the largest id":             {edit(row, `"id":1,`, `"id":9223372036854775807,`), "id is out of range"},
		"an id below 1":              {edit(row, `"id":1,`, `"id":-1,`), "id is out of range"},
		"a time far away":            {edit(row, `"timestamp":1`, `"timestamp":99999991`), "time is out of range"},
		"a prompt without prompt":    {edit(row, `,"prompt":{`, `,"metadata":{`), "have a prompt"},
		"metadata that are none":     {edit(row, `"content"`, `"metadata":[1],"content"`), "not a JSON object"},
		"a huge text":                {edit(row, `"content":"`, `"content":"`+strings.Repeat("x", 70_000)), "too long"},
		"a wrong type":               {edit(row, `"id":`, `"id":"x","part":`), "holds a JSON"},
		"a bad project id":           {edit(0, `"id":"shop"`, `"id":"../shop"`), "not a valid project id"},
		"a bad alias":                {edit(0, `"name"`, `"aliases":["*"],"name"`), "aliases"},
		"a bad session":              {edit(1, `"last_seen":`, `"last_seen":-`), "out of range"},
		"hashes that are none":       {add(`{"kind":"forgotten","salts":["zz"]}`), "not 32 bytes in hex"},
		"a hash that is none":        {add(`{"kind":"forgotten","hashes":[{"hash":"00"}]}`), "not 16 bytes in hex"},
		"records of nothing":         {add(strings.Replace(version("R001", 1, 1, ""), "shop", "nothing", 1)), "a project that the file does not have"},
		"a record without session":   {add(strings.Replace(version("R001", 1, 1, ""), "s1", "", 1)), "no project, id or session"},
		"a record that is none":      {add(`{"kind":"record","project":"shop","id":"R001","op":"put","session":"s1","at":1,"doc":[]}`), "not a JSON object"},
		"a record of wrong types":    {add(`{"kind":"record","project":"shop","id":"R001","op":"put","session":"s1","at":1,"doc":{"version":"x"}}`), "not a version of a record"},
		"a record's other id":        {add(strings.Replace(version("R001", 1, 1, ""), "R001", "R002", 1)), "not a record's, or differs from its doc's"},
		"a record's id that is none": {add(version("R1", 1, 1, "")), "not a record's, or differs from its doc's"},
		"a tick too far":             {add(version("R001", 2, 1, "")), "tick does not follow"},
		"a version too far":          {add(version("R001", 1, 2, "")), "version does not follow"},
		"a record without parent":    {add(version("R001", 1, 1, `"parent_id":"R009",`)), "its parent is not an earlier record"},
		"a relation to nothing":      {add(version("R001", 1, 1, `"related":["R001"],`)), "not an earlier one"},
		"a state of another world":   {add(strings.Replace(version("R001", 1, 1, ""), "OPEN", "SHUT", 1)), "out of range"},
		"a newer event":              {add(`{"kind":"record_event","project":"shop","id":"s1","op":"put","session":"s1","at":1,"doc":{"type":"party","last_sync_tick":0}}`), "unknown type"},
		"an event about nothing":     {add(`{"kind":"record_event","project":"shop","id":"s1","op":"put","session":"s1","at":1,"doc":{"type":"activation","record_id":"R001","base_version":1,"last_sync_tick":0}}`), "not an earlier one"},
		"records of a merged one":    {append([]string{lines[0], strings.Replace(lines[0], `"id":"shop"`, `"id":"gone","merged_into":"shop"`, 1)}, strings.Replace(version("R001", 1, 1, ""), "shop", "gone", 1)), "merged into another project, which has its records"},
		"an alias that is a project": {[]string{`{"kind":"project","id":"a","name":"a","created_at":1,"aliases":["b"]}`, `{"kind":"project","id":"b","name":"b","created_at":1}`}, "an alias of an earlier project"},
		"a project that is an alias": {[]string{`{"kind":"project","id":"b","name":"b","created_at":1}`, `{"kind":"project","id":"c","name":"c","created_at":1,"aliases":["b"]}`}, "one of its aliases is the id of an earlier project"},
		"a newer field of a record":  {add(version("R001", 1, 1, `"mood":1,`)), `does not know its doc's field "mood"`},
		"a record far ahead":         {add(version("R2000000", 1, 1, "")), "out of range"},
		"another parent later":       {append(add(version("R001", 1, 1, "")), version("R002", 2, 1, ""), strings.Replace(version("R002", 3, 2, `"parent_id":"R001",`), record.RecordCreated, record.RecordUpdated, 1)), "differs from the version before it"},
		"created twice":              {append(add(version("R001", 1, 1, "")), version("R001", 2, 2, "")), "does not fit the version"},
		"drift in a change":          {add(version("R001", 1, 1, `"drifted":true,`)), "the state of citations"},
		"a NUL in a record":          {add(strings.Replace(version("R001", 1, 1, ""), `"body":""`, `"body":"a\u0000b"`, 1)), "NUL"},
		"another's event":            {add(`{"kind":"record_event","project":"shop","id":"s2","op":"put","session":"s1","at":1,"doc":{"type":"session_started","last_sync_tick":0}}`), "not its session's"},
		"a session ahead":            {add(`{"kind":"record_event","project":"shop","id":"s1","op":"put","session":"s1","at":1,"doc":{"type":"session_started","last_sync_tick":1}}`), "out of range"},
		"a base above the record": {append(add(version("R001", 1, 1, "")), `{"kind":"record_event","project":"shop","id":"s1","op":"put","session":"s1","at":1,`+
			`"doc":{"type":"activation","record_id":"R001","base_version":2,"last_sync_tick":0}}`), "out of range"},
		"a save without tick": {add(`{"kind":"record_event","project":"shop","id":"s1","op":"put","session":"s1","at":1,"doc":{"type":"session_saved","last_sync_tick":0}}`), "tick does not follow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := newHome(t, now, "")
			target.event(observation.Event{Kind: observation.Prompt, Session: "own", Cwd: target.dir, Source: "UserPromptSubmit", Text: "here before"})
			before, head := target.export(""), target.head()
			_, err := target.restore(sealed(t, c.lines...))
			f := fault.As(err)
			if f == nil || f.Kind != fault.Invalid && f.Kind != fault.Unavailable || !strings.Contains(f.Message, c.says) || !strings.HasPrefix(f.Message, "line ") {
				t.Fatalf("%v, want %q", err, c.says)
			}
			if f.Kind == fault.Unavailable && f.Hint != "upgrade cairn" {
				t.Errorf("hint %q", f.Hint)
			}
			if target.head() != head || !bytes.Equal(target.export(""), before) {
				t.Error("something of it was stored")
			}
			target.sound()
		})
	}
}

// version returns a line with a version of a record. more contains further fields of its
// doc.
func version(id string, tick, version int, more string) string {
	return fmt.Sprintf(`{"kind":"record","project":"shop","id":%q,"op":"put","session":"s1","at":1770000000000000000,"doc":{"id":%q,"type":"note","title":"t",`+
		`"summary":"","body":"","state":"OPEN",%s"created":"2026-02-02T02:40:00.000Z","modified":"2026-02-02T02:40:00.000Z","version":%d,`+
		`"created_ns":1770000000000000000,"modified_ns":1770000000000000000,"tick":%d,"event":"record_created","last_sync_tick":%d,"base_version":1}}`,
		id, id, more, version, tick, tick)
}

// TestRecordsOfAnotherHistoryAreRefusedAndLaterOnesAreTaken imports earlier and later
// exports of one project, and exports of two projects that have diverged.
func TestRecordsOfAnotherHistoryAreRefusedAndLaterOnesAreTaken(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, _ := busy(t, now)
	create := func(h home, title string) {
		t.Helper()
		_, err := h.book().Create(t.Context(), record.CreateArgs{
			Caller: record.Caller{ProjectID: "shop", SessionID: "r1"}, Type: "note", Title: title,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	create(source, "the first")
	early := source.export("shop")
	create(source, "the second")
	late := source.export("shop")
	target := newHome(t, now, "")
	if r := target.mustRestore(early); r.Records.Records != 1 {
		t.Errorf("early: %+v", r.Records)
	}
	if r := target.mustRestore(late); r.Records.Records != 1 || r.Records.Known == 0 || !bytes.Equal(target.export("shop"), late) {
		t.Errorf("late: %+v", r.Records)
	}
	if r := target.mustRestore(early); r.Records.Added != 0 || !bytes.Equal(target.export("shop"), late) {
		t.Errorf("early again: %+v", r.Records)
	}
	create(source, "here")
	now.Add(1)
	create(target, "there")
	target.event(observation.Event{Kind: observation.Prompt, Session: "s7", Cwd: target.dir, Source: "UserPromptSubmit", Text: "not in the file"})
	create(source, "here")
	before := target.export("")
	_, err := target.restore(source.export("shop"))
	if !fault.HasCode(err, histories.CodeOtherHistory) || fault.KindOf(err) != fault.Conflict {
		t.Errorf("parted: %v", err)
	}
	if !bytes.Equal(target.export(""), before) {
		t.Error("something of it was stored")
	}
	parted := source.export("shop")
	merge := func(a *ImportArgs) { a.Merge = true }
	r := target.mustRestore(parted, merge)
	if r.Records.Records != 2 || r.Records.Renumbered != 2 || r.Records.Known == 0 {
		t.Errorf("merged: %+v", r.Records)
	}
	merged := target.export("")
	if r := target.mustRestore(parted, merge); r.Records.Added != 0 || !bytes.Equal(target.export(""), merged) {
		t.Errorf("merged again: %+v", r.Records)
	}
	if r := source.mustRestore(target.export("shop"), merge); r.Records.Records != 1 {
		t.Errorf("merged there: %+v", r.Records)
	}
	if r := target.mustRestore(source.export("shop"), merge); r.Records.Added != 0 {
		t.Errorf("back from there: %+v", r.Records)
	}
}

// TestTwoProjectsThatAreOneHereAreNotMixed imports the records of a project whose name is
// an alias of another project in this store.
func TestTwoProjectsThatAreOneHereAreNotMixed(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source := storied(t)
	target, shop := busy(t, now)
	if err := target.AddAlias(t.Context(), "works", "shop"); err != nil {
		t.Fatal(shop, err)
	}
	before := target.export("")
	if _, err := target.restore(source.export("")); !fault.HasCode(err, histories.CodeBothHaveRecords) || fault.KindOf(err) != fault.Conflict {
		t.Errorf("both: %v", err)
	}
	if !bytes.Equal(target.export(""), before) {
		t.Error("something of it was stored")
	}
	target.mustRestore(source.export("works")) // imported alone, they belong to the alias's project
	c := record.Caller{ProjectID: "shop"}
	if r, err := target.book().Get(t.Context(), record.GetRefArgs{Caller: c, ID: "R001"}); err != nil || r.Title != "about works" {
		t.Errorf("%+v %v", r, err)
	}
}

// TestTwoProjectsEachHaveAnR001 reads the record of each project, exports and imports the
// projects one by one, and deletes one project's rows and one record's documents.
func TestTwoProjectsEachHaveAnR001(t *testing.T) {
	t.Parallel()
	source := storied(t)
	ctx, target := t.Context(), newHome(t, clockAt(1_780_000_000), "")
	own := func(h home, name string) (out string) {
		t.Helper()
		c, book := record.Caller{ProjectID: name}, h.book()
		history, err := book.History(ctx, record.HistoryArgs{Caller: c, ID: "R001"})
		past, perr := book.Overview(ctx, record.OverviewArgs{Caller: c, At: "tick:1"})
		present, oerr := book.Overview(ctx, record.OverviewArgs{Caller: c})
		version, verr := book.Diff(ctx, record.DiffArgs{Caller: c, ID: "R001", From: "v1", To: "v2"})
		touched, terr := book.Touched(ctx, project.Project{ID: name}, "r2"+name)
		past.At = nil // the position of the moment in this store's log
		text, jerr := json.Marshal([]any{history, past, present, version, touched})
		if err := errors.Join(err, perr, oerr, verr, terr, jerr); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(history) != 2 || len(past.RootRecords) != 1 || len(past.OpenRecords) != 1 || len(touched) != 3 || present.Totals.Roots != 1 {
			t.Errorf("%s: %s", name, text)
		}
		return string(text)
	}
	for name, other := range map[string]string{"shop": "works", "works": "shop"} {
		if text := own(source, name); strings.Contains(text, other) {
			t.Errorf("%s tells of %s: %s", name, other, text)
		}
		target.mustRestore(source.export(name))
	}
	same := func(h home, names ...string) {
		t.Helper()
		for _, name := range names {
			if a, b := own(source, name), own(h, name); a != b {
				t.Errorf("%s\n%s", name, firstDifference([]byte(a), []byte(b)))
			}
		}
		h.sound()
	}
	same(target, "shop", "works")
	if done, err := target.Purge(ctx, forget.PurgeArgs{Project: "works", Confirm: true}); err != nil || done.Rows != 4 {
		t.Fatalf("%+v %v", done, err)
	}
	same(target, "shop", "works")
	s, err := target.Store(ctx)
	if err == nil {
		err = s.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.Blank(ctx, "records/works", record.KindRecord, "R001")
			if n != 2 {
				t.Errorf("%d documents were blanked", n)
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	same(target, "shop")
	gone, err := target.book().History(ctx, record.HistoryArgs{Caller: record.Caller{ProjectID: "works"}, ID: "R001"})
	if err != nil || len(gone) != 0 {
		t.Errorf("%v %v", gone, err)
	}
}

func TestASecretInAnOlderRecordIsRedactedAndKnownAgain(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, _ := busy(t, now)
	secret := "ghp_" + strings.Repeat("aB3dE5", 6)
	text := sealed(t, append(body(source.export("shop")), strings.Replace(version("R001", 1, 1, ""), `"body":""`, `"body":"use `+secret+`"`, 1))...)
	target := newHome(t, now, "")
	r := target.mustRestore(text)
	if out := target.export(""); r.Records.Redacted != 1 || bytes.Contains(out, []byte(secret)) {
		t.Errorf("%+v", r.Records)
	}
	if r = target.mustRestore(text); r.Records.Known != 1 || r.Records.Added != 0 {
		t.Errorf("again %+v", r.Records)
	}
}

func TestATornOrAlteredExportLeavesNoTrace(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source, _ := busy(t, now)
	whole := source.export("shop")
	target := newHome(t, now, "")
	target.event(observation.Event{Kind: observation.Prompt, Session: "own", Cwd: target.dir, Source: "UserPromptSubmit", Text: "here before"})
	before := target.export("")
	for name, text := range map[string][]byte{
		"half":       whole[:len(whole)/2],
		"no trailer": whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1],
		"altered":    bytes.Replace(whole, []byte("tidy page 8"), []byte("tidy page 9"), 1),
	} {
		if _, err := target.restore(text); !fault.HasCode(err, exchange.CodeDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(target.export(""), before) {
			t.Errorf("%s: something was taken", name)
		}
	}
}

func TestAProjectOfAnotherRepositoryIsRefusedAndAMovedOneIsKnown(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	make := func(origin string) (home, string) {
		h := newHome(t, now, "")
		shop := filepath.Join(h.dir, "shop")
		put(t, filepath.Join(shop, ".git", "config"), "[remote \"origin\"]\n\turl = https://example.org/"+origin+".git\n", 0o600)
		put(t, filepath.Join(shop, ".git", "HEAD"), "ref: refs/heads/main\n", 0o600)
		return h, shop
	}
	record := func(h home, shop, session string) string {
		return h.event(observation.Event{Kind: observation.Prompt, Session: session, Cwd: shop, Source: "UserPromptSubmit", Text: "tidy the ledger " + session}).Project.ID
	}
	one, shop := make("one")
	record(one, shop, "s1")
	whole := one.export("shop")
	other, otherShop := make("other")
	record(other, otherShop, "s2")
	before := other.export("")
	if _, err := other.restore(whole); !fault.HasCode(err, project.CodeOtherOrigin) || fault.KindOf(err) != fault.Conflict {
		t.Errorf("another repository: %v", err)
	}
	if !bytes.Equal(other.export(""), before) {
		t.Error("something of it was stored")
	}
	// The same repository elsewhere: the exported location is on another machine.
	moved, movedShop := make("one")
	text := strings.ReplaceAll(string(whole), one.dir, filepath.Join(one.dir, "gone"))
	moved.mustRestore(sealed(t, body([]byte(text))...))
	if id := record(moved, movedShop, "s3"); id != "shop" {
		t.Errorf("the moved repository is %s", id)
	}
}

// BenchmarkExchange exports and imports a given number of rows and reports rows per second.
// Run it with -benchtime 1x.
func BenchmarkExchange(b *testing.B) {
	for _, rows := range []int{10_000, 100_000} {
		b.Run(strconv.Itoa(rows), func(b *testing.B) {
			now := clockAt(1_770_000_000)
			source := newHome(b, now, "")
			text := manyRows(b, rows)
			source.mustRestore(text)
			for b.Loop() {
				began := time.Now()
				whole := source.export("")
				b.ReportMetric(float64(rows)/time.Since(began).Seconds(), "exported/s")
				target := newHome(b, now, "")
				began = time.Now()
				if r, err := target.restore(whole); err != nil || r.Rows.Added != rows {
					b.Fatalf("%+v %v", r, err)
				}
				b.ReportMetric(float64(rows)/time.Since(began).Seconds(), "imported/s")
			}
		})
	}
}

// manyRows returns an export of a given number of rows, in sessions of a hundred.
func manyRows(t testing.TB, rows int) []byte {
	lines := []string{`{"kind":"project","id":"shop","name":"shop","created_at":1770000000}`}
	for i := range rows {
		s, at := fmt.Sprint("s", i/100), 1_770_000_000+i
		if i%100 == 0 {
			lines = append(lines, fmt.Sprintf(`{"kind":"session","id":%q,"project":"shop","started_at":%d,"last_seen":%d}`, s, at, at+99))
			lines = append(lines, fmt.Sprintf(`{"kind":"observation","id":%d,"timestamp":%d,"session":%q,"project":"shop","obs_type":"user_prompt",`+
				`"source_event":"UserPromptSubmit","content":"tidy ledger number %d of the shop","prompt":{"id":%d,"timestamp":%d,"source":"user"}}`, i+1, at, s, i, i+1, at))
			continue
		}
		lines = append(lines, fmt.Sprintf(`{"kind":"observation","id":%d,"timestamp":%d,"session":%q,"project":"shop","obs_type":"command",`+
			`"source_event":"PostToolUse","tool_name":"Bash","content":"make page%d && go test ./internal/page%d","metadata":{"description":"Build and test"},"tool_use_id":"toolu_%024d","prompt_id":%d}`,
			i+1, at, s, i, i%97, i, i/100*100+1))
	}
	return sealed(t, lines...)
}

// FuzzImport imports files with a valid header and trailer and arbitrary lines. They are
// imported or refused with a reason, and the store stays intact.
func FuzzImport(f *testing.F) {
	now := clockAt(1_770_000_000)
	source, _ := busy(f, now)
	_, err := source.book().Create(f.Context(), record.CreateArgs{
		Caller: record.Caller{ProjectID: "shop", SessionID: "r1"}, Type: "note", Title: "a note", Body: "see a/b.go#L1-L2",
	})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := source.Purge(f.Context(), forget.PurgeArgs{Confirm: true, IDs: []int64{1}}); err != nil {
		f.Fatal(err)
	}
	lines := body(source.export("shop"))
	f.Add(strings.Join(append(lines[:6:6], lines[len(lines)-4:]...), "\n"))
	f.Add(strings.Join([]string{
		`{"kind":"project","id":"a","name":"","created_at":0}`, `{"kind":"project","id":"b","name":"b","created_at":1,"merged_into":"a","aliases":["a","c"]}`,
		`{"kind":"session","id":"x","project":"b","started_at":9,"last_seen":1,"digest":{"intent":7}}`,
	}, "\n"))
	f.Add(lines[0] + "\n" + version("R001", 1, 1, "") + "\n" + version("R001", 2, 2, `"parent_id":null,"related":[],"metadata":{"a":[]},`))
	target := newHome(f, now, "")
	f.Fuzz(func(t *testing.T, text string) {
		target := target
		target.t = t
		_, err := target.restore(sealed(t, strings.Split(text, "\n")...))
		if err != nil && fault.KindOf(err) == fault.Internal {
			t.Fatalf("%v\n%s", err, text)
		}
		if err == nil { // a refused import changes nothing, as other tests show
			target.sound()
		}
	})
}

// TestAnImportedPromptDividesTheTurnInWhichItsActionsStood imports a session without one of
// its prompts. After more turns were indexed, it imports that prompt.
func TestAnImportedPromptDividesTheTurnInWhichItsActionsStood(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source := newHome(t, now, "")
	for i := range 3 {
		for _, e := range []observation.Event{
			{Kind: observation.Prompt, Source: "UserPromptSubmit", Text: fmt.Sprint("tidy page ", i)},
			{Kind: observation.Tool, Source: "PostToolUse", Calls: []observation.Call{{Tool: "Bash", Action: observation.Shell, Command: fmt.Sprint("make page", i)}}},
		} {
			now.Add(1)
			e.Session, e.Cwd = "s1", source.dir
			source.event(e)
		}
	}
	whole, rest := body(source.export("")), []string{}
	for _, line := range whole {
		if !strings.Contains(line, `"content":"tidy page 1"`) {
			rest = append(rest, promptOf.ReplaceAllString(line, ""))
		}
	}
	target := newHome(t, now, "")
	target.mustRestore(sealed(t, rest...))
	target.indexed()
	target.mustRestore(sealed(t, whole...))
	target.indexed()
	target.sound()
}

var promptOf = regexp.MustCompile(`,"prompt_id":\d+`)

// indexed updates the index of turns.
func (h home) indexed() {
	h.t.Helper()
	j, err := h.Observations(context.Background())
	if err == nil {
		_, err = j.IndexTurns(context.Background(), 1<<20)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}
