package hub_test

import (
	"strings"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/replica"
)

func TestWhatIsPushedIsPulledInOrderByOtherDevices(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		desk := open(t, address).device("new", hub.LevelAdmin)
		vault, memory := uuid(), uuid()
		desk.want([]int{201, 201}, vaultPut(vault, "work"), memoryPut(memory, "main", vault, "work"))
		a, b := entryPut(memory, "first"), entryPut(memory, "second", object{"metadata": object{"speaker": "Ann"}})
		r := desk.want([]int{201, 201, 201}, a, b, contextPut(memory, "# now", noon))
		if r[0].EntryID == "" || r[0].EntryID == r[1].EntryID || r[2].EntryID != "" {
			t.Fatalf("entry ids: %+v", r)
		}
		laptop := desk.other(desk.office)
		items := laptop.all(memory)
		if len(items) != 4 {
			t.Fatalf("%d items pulled, want 4", len(items))
		}
		for i, it := range items {
			if it.HubSeq != int64(i+1) {
				t.Errorf("item %d has number %d", i, it.HubSeq)
			}
		}
		first := fields(t, items[1].Doc)
		wanted := object{"entryId": r[0].EntryID, "memoryId": memory, "rawEntry": "first", "creationTime": r[0].CreationTime, "summary": "s"}
		for k, want := range wanted {
			if first[k] != want {
				t.Errorf("%s is %v, want %v", k, first[k], want)
			}
		}
		if items[1].Key != a.Key || items[2].Key != b.Key || items[1].ID != r[0].EntryID {
			t.Error("pulled items do not carry their keys and ids")
		}
		if _, local := first["localId"]; local {
			t.Error("a pulled entry has the localId of another device")
		}
		if v := laptop.all(vault); len(v) != 1 || fields(t, v[0].Doc)["title"] != "work" {
			t.Errorf("the vault's stream: %v", v)
		}
	})
}

func TestARepeatedKeyIsAnsweredAndNotTakenAgain(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		memory := d.memory()
		put := entryPut(memory, "once")
		first := d.want([]int{201}, put)[0]
		again := d.want([]int{200}, put)[0]
		if again.EntryID != first.EntryID || again.HubSeq != first.HubSeq || again.CreationTime != first.CreationTime {
			t.Errorf("replayed as %+v, was %+v", again, first)
		}
		twin := put
		twin.Seq = 0
		d.want([]int{200, 200}, put, twin)
		other := entryPut(memory, "else")
		other.Key = put.Key
		if r := d.want([]int{409}, other)[0]; r.Error.Code != "idempotency_mismatch" {
			t.Errorf("another text under the key: %+v", r.Error)
		}
		fresh := entryPut(memory, "both")
		same := fresh
		d.seq += 2
		fresh.Seq, same.Seq = d.seq-1, d.seq
		d.want([]int{201, 200}, fresh, same)
		if n := len(d.all(memory)); n != 3 {
			t.Errorf("%d items, want the memory and two entries", n)
		}
	})
}

func TestAStreamEndsAtItsFirstFailureAndOthersGoOn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		one, two := d.memory(), d.memory()
		late := entryPut(one, "after")
		d.want([]int{201, 201, 413, 424, 201, 404, 404},
			entryPut(one, "before"), entryPut(two, "a"), entryPut(one, strings.Repeat("x", 9001)), late, entryPut(two, "b"),
			entryPut(uuid(), "nowhere"), entryPatch(two, uuid(), object{"summary": "s"}))
	})
}

func TestWhatAFailureHeldUpIsTakenLater(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		memory := d.memory()
		late := entryPut(memory, "after")
		d.want([]int{404, 424}, entryPatch(memory, uuid(), object{"summary": "s"}), late)
		d.want([]int{201}, late)
	})
}

func TestTitlesThatAreTakenAreAnsweredWithTheirId(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		d := o.device("new", hub.LevelAdmin)
		vault, memory := uuid(), uuid()
		d.want([]int{201}, vaultPut(vault, "work"))
		if r := d.want([]int{409}, vaultPut(uuid(), "work"))[0]; r.Error.Code != "already_exists" || r.Error.Details["existing_id"] != vault {
			t.Errorf("a vault's title: %+v", r.Error)
		}
		d.want([]int{200}, vaultPut(vault, "work"))
		elsewhere := uuid()
		r := d.want([]int{201}, memoryPut(memory, "main", elsewhere, "work"))[0]
		if r.VaultID != vault {
			t.Errorf("filed in %s, want the vault that has the title, %s", r.VaultID, vault)
		}
		if doc := fields(t, d.all(memory)[0].Doc); doc["vaultId"] != vault || doc["vault"].(object)["vaultId"] != vault {
			t.Errorf("pulled: %v", doc)
		}
		refused := memoryPut(uuid(), "main", elsewhere, "work")
		if r := d.want([]int{409, 424}, refused, entryPut(refused.Stream, "x"))[0]; r.Error.Details["existing_id"] != memory {
			t.Errorf("a memory's title: %+v", r.Error)
		}
		d.want([]int{404}, entryPut(refused.Stream, "x"))
		d.want([]int{200, 201}, memoryPut(memory, "main", vault, "work"), entryPut(memory, "x"))
		d.want([]int{201}, memoryPut(uuid(), "Main", vault, "work"))
		stranger := o.device("new", hub.LevelAdmin)
		stranger.want([]int{201, 201}, vaultPut(vault, "work"), memoryPut(memory, "main", vault, "work"))
	})
}

func TestCanonicalTimeIsTrueNeverFutureAndBehindWhatOthersRead(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		memory := d.memory()
		at := func(captured time.Time) string {
			return d.want([]int{201}, entryPut(memory, "x", object{"capturedTime": text(captured)}))[0].CreationTime
		}
		past := noon.Add(-time.Hour)
		for _, c := range []struct {
			name           string
			captured, want time.Time
		}{
			{"true", past, past},
			{"late", past.Add(-time.Hour), past.Add(1)},
			{"equal", past, past.Add(2)},
			{"future", noon.Add(time.Hour), noon},
			{"future again", noon.Add(time.Hour), noon.Add(1)},
		} {
			if got := at(c.captured); got != text(c.want) {
				t.Errorf("%s: %s, want %s", c.name, got, text(c.want))
			}
		}
		r := d.want([]int{201, 201}, contextPut(memory, "old", past), contextPut(memory, "new", noon.Add(time.Hour)))
		if r[0].CreationTime != text(past) || r[1].CreationTime != text(noon) {
			t.Errorf("contexts count from %s and %s", r[0].CreationTime, r[1].CreationTime)
		}
	})
}

func TestPatchesAndOneCorrection(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		memory := d.memory()
		r := d.want([]int{201, 201}, entryPut(memory, "one"), entryPut(memory, "two"))
		one, two := r[0].EntryID, r[1].EntryID
		d.want([]int{200}, entryPatch(memory, one, object{"summary": "from the desk"}))
		d.other(d.office).want([]int{200}, entryPatch(memory, one, object{"summary": "from the laptop"}))
		d.want([]int{200}, entryPatch(memory, one, object{"tags": object{"a": "b"}}))
		doc := d.entry(memory, one)
		if doc["summary"] != "from the laptop" || doc["tags"].(object)["a"] != "b" || doc["tags"].(object)["k"] != nil || doc["rawEntry"] != "one" {
			t.Errorf("after patches: %v", doc)
		}
		d.want([]int{404}, correction(memory, one, uuid()))
		d.want([]int{200}, correction(memory, one, two))
		for _, late := range []replica.Item{correction(memory, one, two), entryPatch(memory, one, object{"summary": "late"})} {
			if r := d.want([]int{409}, late)[0]; r.Error.Code != "immutability_violation" {
				t.Errorf("after the correction: %+v", r.Error)
			}
		}
		if doc := d.entry(memory, one); doc["correctedEntryId"] != two || doc["correctionReason"] != "wrong" {
			t.Errorf("after the correction: %v", doc)
		}
	})
}

func (d *device) entry(memory, id string) object {
	d.Helper()
	var answer replica.EntriesResponse
	if status, _ := d.request("GET", replica.PathEntries+"?memory="+memory+"&entry="+id, nil, &answer); status != 200 {
		d.Fatalf("entry: %d", status)
	}
	return fields(d, answer.Entries[0])
}

func TestADeletedEntryStaysDeletedAndItsTextIsGone(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		memory, own := d.memory(), uuid()
		put := entryPut(memory, "secret text", object{"entryId": own})
		if r := d.want([]int{201}, put)[0]; r.EntryID != own {
			t.Fatalf("the proposed id %s became %s", own, r.EntryID)
		}
		d.want([]int{200}, entryPatch(memory, own, object{"summary": "secret summary"}))
		if r := d.want([]int{409}, entryPut(memory, "another", object{"entryId": own}))[0]; r.Error.Details["existing_id"] != own {
			t.Errorf("an id that is taken: %+v", r.Error)
		}
		del := entryDelete(memory, own)
		d.want([]int{204}, del)
		d.want([]int{204}, del)
		d.want([]int{204}, entryDelete(memory, own))
		if r := d.want([]int{200}, put)[0]; r.EntryID != own {
			t.Errorf("the late retry: %+v", r)
		}
		d.want([]int{404}, entryPut(memory, "again", object{"entryId": own}))
		d.want([]int{404}, entryPatch(memory, own, object{"summary": "x"}))
		if status, _ := d.request("GET", replica.PathEntries+"?memory="+memory+"&entry="+own, nil, nil); status != 404 {
			t.Errorf("the deleted entry is read with %d", status)
		}
		items := d.all(memory)
		if len(items) != 2 || items[1].Op != "delete" || items[1].ID != own {
			t.Errorf("pulled after the deletion: %+v", items)
		}
		never := uuid()
		d.want([]int{204}, entryDelete(memory, never))
		d.want([]int{404}, entryPut(memory, "too late", object{"entryId": never}))
		together := entryPut(memory, "made and deleted at once", object{"entryId": uuid()})
		d.want([]int{201, 204}, together, entryDelete(memory, fields(t, together.Doc)["entryId"].(string)))
		for _, it := range d.all(memory) {
			if strings.Contains(string(it.Doc), "secret") || strings.Contains(string(it.Doc), "at once") {
				t.Errorf("a deleted text is pulled: %s", it.Doc)
			}
		}
	})
}

func TestADeletedMemoryTakesItsContentsAndStaysDeleted(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		vault, memory, own := uuid(), uuid(), uuid()
		d.want([]int{201}, vaultPut(vault, "work"))
		put := memoryPut(memory, "main", vault, "work")
		d.want([]int{201, 201, 201}, put, entryPut(memory, "old", object{"entryId": own}), contextPut(memory, "old", noon))
		if r := d.want([]int{409}, item(vault, "vault", "delete", vault, object{}))[0]; r.Error.Code != "vault_not_empty" {
			t.Errorf("deleting a full vault: %+v", r.Error)
		}
		gone := item(memory, "memory", "delete", memory, object{})
		d.want([]int{204, 404}, gone, entryPut(memory, "behind it"))
		d.want([]int{204}, item(memory, "memory", "delete", memory, object{}))
		if items := d.all(memory); len(items) != 1 || items[0].Kind != "memory" || items[0].Op != "delete" {
			t.Errorf("pulled after the deletion: %+v", items)
		}
		d.want([]int{404}, entryPut(memory, "late"))
		d.want([]int{200}, put)
		d.want([]int{404}, memoryPut(memory, "main", vault, "work"))
		if status, _ := d.request("GET", replica.PathEntries+"?memory="+memory, nil, nil); status != 404 {
			t.Errorf("a deleted memory is read with %d", status)
		}
		if err := d.hub.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		var kept, unswept int
		db := behind(t, address)
		if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM hub_items WHERE doc LIKE '%old%') +
(SELECT count(*) FROM hub_entries WHERE doc LIKE '%old%'), (SELECT count(*) FROM hub_meta WHERE name LIKE 'sweep:%')`).Scan(&kept, &unswept); err != nil || kept+unswept != 0 {
			t.Errorf("%d deleted texts are in the database, %d streams are to be swept, %v", kept, unswept, err)
		}

		// The memory is created again, as the default memory of a project is. It must contain
		// no old data.
		d.clock.set(noon.Add(time.Hour))
		d.want([]int{201, 404}, memoryPutAt(memory, "main", vault, "work", noon.Add(time.Minute)), entryPut(memory, "old", object{"entryId": own}))
		d.want([]int{201}, entryPut(memory, "new"))
		if entries := d.entries(memory, ""); len(entries) != 1 || entries[0]["rawEntry"] != "new" {
			t.Errorf("read from the memory made anew: %v", entries)
		}
		if items := d.all(memory); len(items) != 3 || items[0].Op != "delete" || items[1].Op != "put" {
			t.Errorf("pulled from the memory made anew: %+v", items)
		}
		d.want([]int{204}, item(memory, "memory", "delete", memory, object{}))
		d.want([]int{204}, item(vault, "vault", "delete", vault, object{}))
		d.want([]int{204}, item(vault, "vault", "delete", vault, object{}))
		d.want([]int{404}, memoryPut(uuid(), "other", vault, "work"))
		d.want([]int{404}, item(uuid(), "vault", "delete", uuid(), object{}))
	})
}

func (d *device) entries(memory, query string) []object {
	d.Helper()
	var answer replica.EntriesResponse
	if status, _ := d.request("GET", replica.PathEntries+"?memory="+memory+query, nil, &answer); status != 200 {
		d.Fatalf("entries: %d", status)
	}
	var out []object
	for _, e := range answer.Entries {
		out = append(out, fields(d, e))
	}
	return out
}
