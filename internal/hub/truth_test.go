package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/replica"
)

// waitingFor starts a pull that also waits for a newer catalogue.
func (d *device) waitingFor(catalogue int64, c ...replica.Cursor) <-chan replica.PullResponse {
	out := make(chan replica.PullResponse, 1)
	go func() {
		var answer replica.PullResponse
		path := fmt.Sprintf("%s?catalogue=%d", replica.PathPull, catalogue)
		status, _ := d.request("POST", path, replica.PullRequest{Cursors: append([]replica.Cursor{}, c...), WaitMillis: 20_000}, &answer)
		if status != 200 {
			d.Errorf("pull: %d", status)
		}
		out <- answer
	}()
	return out
}

func (d *device) heads() (answer replica.HeadsResponse) {
	d.Helper()
	d.request("GET", replica.PathHeads, nil, &answer)
	return answer
}

// A waiting pull ends when a memory is created or deleted, by this hub or by another hub with
// the same database, with and without cursors. Entries do not end a pull that waits only for
// the catalogue.
func TestAWaitingPullEndsWithANewerCatalogue(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		here := open(t, address)
		d := here.device("new", hub.LevelAdmin)
		old := d.memory()
		far := d.other(open(t, address))
		version := far.heads().Catalogue
		if version < 1 {
			t.Fatalf("the catalogue has version %d", version)
		}
		d.want([]int{201}, entryPut(old, "no news of the catalogue"))
		if now := far.heads().Catalogue; now != version {
			t.Errorf("an entry has made the catalogue newer: %d after %d", now, version)
		}
		at := replica.Cursor{Stream: old, After: 2}
		for _, change := range []func(){func() { d.memory() }, func() { d.want([]int{204}, item(old, "memory", "delete", old, object{})) }} {
			near, remote := d.waitingFor(version), far.waitingFor(version, at)
			change()
			for _, waiting := range []<-chan replica.PullResponse{near, remote} {
				if a := <-waiting; a.Catalogue != version+1 && len(a.Streams) == 0 { // the deletion is also a change of the stream
					t.Errorf("ended with %+v, want version %d", a, version+1)
				}
			}
			if version++; far.heads().Catalogue != version {
				t.Errorf("the catalogue has version %d, want %d", far.heads().Catalogue, version)
			}
		}
		stranger := here.device("new", hub.LevelAdmin)
		if v := stranger.heads().Catalogue; v != 1 {
			t.Errorf("another user's catalogue has version %d", v)
		}
		waiting := d.waitingFor(version)
		here.hub.Stop()
		if a := <-waiting; a.Catalogue != 0 || len(a.Streams) != 0 {
			t.Errorf("a hub that stops answers %+v", a)
		}
	})
}

// A pull names cursors beyond the head. For streams that are unknown or another user's the
// head is 0. A waiting pull ends with that response.
func TestAPullNamesCursorsBeyondTheHead(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		d := o.device("new", hub.LevelAdmin)
		one, gone := d.memory(), d.memory()
		foreign := o.device("new", hub.LevelAdmin).memory()
		d.want([]int{204}, item(gone, "memory", "delete", gone, object{}))
		unknown := uuid()
		a := <-d.waiting(replica.Cursor{Stream: one, After: 9}, replica.Cursor{Stream: unknown, After: 1},
			replica.Cursor{Stream: foreign, After: 1}, replica.Cursor{Stream: gone, After: 2})
		want := []replica.Cursor{{Stream: one, After: 1}, {Stream: unknown}, {Stream: foreign}}
		if fmt.Sprint(a.Behind) != fmt.Sprint(want) {
			t.Errorf("behind: %v, want %v", a.Behind, want)
		}
		if a := d.pull(replica.Cursor{Stream: one, After: 1}, replica.Cursor{Stream: unknown}); len(a.Behind) > 0 {
			t.Errorf("cursors at the head are named: %v", a.Behind)
		}
	})
}

// A hub whose disk is full responds to each change with 507, and accepts it when there is
// space again. Reads continue.
func TestAFullDiskIsAnsweredAsSuch(t *testing.T) {
	t.Parallel()
	o := open(t, "sqlite:"+t.TempDir()+"/hub.db")
	d := o.device("new", hub.LevelAdmin)
	memory := d.memory()
	if err := o.hub.LimitPages(t.Context(), 1); err != nil { // not below the present size
		t.Fatal(err)
	}
	put := entryPut(memory, strings.Repeat("long ", 1700))
	var full replica.Item
	for range 20 {
		full = put
		full.Key, full.Seq = newKey(), 0
		if r := d.push(full)[0]; r.Status == 507 {
			if r.Error == nil || r.Error.Code != "disk_full" {
				t.Fatalf("refused with %+v", r.Error)
			}
			break
		} else if r.Status != 201 {
			t.Fatalf("answered %d: %+v", r.Status, r.Error)
		}
		full.Key = ""
	}
	if full.Key == "" {
		t.Fatal("it is never full")
	}
	if len(d.all(memory)) == 0 {
		t.Error("nothing can be read")
	}
	if err := o.hub.LimitPages(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	d.want([]int{201}, full)
}

// over returns a context that was written over another one, "" for none, and its id.
func over(memory, base, markdown string, at time.Time) (put replica.Item, id string) {
	id = uuid()
	return item(memory, "context", "put", id, object{
		"contextId": id, "sessionId": uuid(), "markdown": markdown, "updatedAt": text(at), "baseId": base,
	}), id
}

// Of several contexts over the same one, the first to arrive becomes the current one,
// regardless of the clocks. The others are stored with an earlier time and name it.
func TestTheFirstContextOverTheCurrentOneWins(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		d := o.device("new", hub.LevelAdmin)
		memory := d.memory()
		ago := func(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }
		base, b := over(memory, "", "base", ago(5))
		first, f := over(memory, b, "first", ago(9)) // its clock is slow
		second, s := over(memory, b, "second", ago(1))
		third, _ := over(memory, s, "third", ago(0)) // its writer's next context
		none, _ := over(memory, "", "none", ago(0))
		d.want([]int{201, 201}, base, first)
		d.want([]int{201}, entryPut(memory, "between"))
		d.want([]int{201, 201, 201}, second, third, none)
		old := contextPut(memory, "of an older device", ago(2)) // its time decides, as before
		merged, m := over(memory, old.ID, "merged", ago(8))
		stale := contextPut(memory, "late and old", ago(9))
		d.want([]int{201, 201, 201}, old, merged, stale)
		d.want([]int{200}, second) // a replay changes nothing
		at, against, newest := map[string]time.Time{}, map[string]string{}, ""
		for _, it := range d.all(memory) {
			if it.Kind != "context" {
				continue
			}
			doc := fields(t, it.Doc)
			name := doc["markdown"].(string)
			when, err := time.Parse(time.RFC3339Nano, doc["updatedAt"].(string))
			if err != nil {
				t.Fatal(err)
			}
			at[name] = when
			against[name], _ = doc["conflictWith"].(string)
			if newest == "" || !when.Before(at[newest]) {
				newest = name
			}
		}
		want := map[string]string{
			"base": "", "first": "", "second": f, "third": f, "none": f, "of an older device": "", "merged": "", "late and old": m,
		}
		for name, id := range want {
			if against[name] != id {
				t.Errorf("%q lost against %q, want %q", name, against[name], id)
			}
		}
		if newest != "merged" || !at["first"].After(at["base"]) || !at["second"].Before(at["first"]) {
			t.Errorf("the newest is %q; times %v", newest, at)
		}
	})
}
