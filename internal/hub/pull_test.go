package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/hub"
	"cairn/internal/replica"
)

func TestPullGoesOnWhereItEndedAndSaysWhenThereIsMore(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		one, two := d.memory(), d.memory()
		for i := range 5 {
			d.want([]int{201, 201}, entryPut(one, fmt.Sprint("a", i)), entryPut(two, fmt.Sprint("b", i)))
		}
		cursors := []replica.Cursor{{Stream: two}, {Stream: one, After: 1}}
		var read []string
		for rounds := 0; ; rounds++ {
			var answer replica.PullResponse
			d.request("POST", replica.PathPull, replica.PullRequest{Cursors: cursors, Limit: 2}, &answer)
			if len(answer.Streams) == 0 {
				break
			}
			if rounds > 10 {
				t.Fatal("pulling never ends")
			}
			n := 0
			for _, s := range answer.Streams {
				at := slices.IndexFunc(cursors, func(c replica.Cursor) bool { return c.Stream == s.Stream })
				for _, it := range s.Items {
					if it.HubSeq <= cursors[at].After {
						t.Errorf("item %d is not behind the cursor %d", it.HubSeq, cursors[at].After)
					}
					cursors[at].After = it.HubSeq
					if it.Kind == "entry" {
						read = append(read, fields(t, it.Doc)["rawEntry"].(string))
					}
					n++
				}
				if s.Next != cursors[at].After {
					t.Errorf("next is %d after item %d", s.Next, cursors[at].After)
				}
				if s.More != (s.Next < 6) {
					t.Errorf("more is %v at %d of 6", s.More, s.Next)
				}
			}
			if n > 2 {
				t.Errorf("%d items in a page of 2", n)
			}
		}
		if got := strings.Join(read, " "); got != "b0 b1 b2 b3 b4 a0 a1 a2 a3 a4" {
			t.Errorf("read %s", got)
		}
		if answer := d.pull(replica.Cursor{Stream: one, After: 99}, replica.Cursor{Stream: uuid()}); len(answer.Streams) != 0 {
			t.Errorf("beyond the head and of an unknown stream: %+v", answer.Streams)
		}
	})
}

func TestAnAnswerToAPullIsBoundedAndHoldsAtLeastOneItem(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		memory := d.memory()
		raw := strings.Repeat("𝄞", 9000) // 36 KB
		for range 2 {
			var items []replica.Item
			for range 70 {
				items = append(items, entryPut(memory, raw))
			}
			d.push(items...)
		}
		answer := d.pull(replica.Cursor{Stream: memory})
		size := 0
		for _, it := range answer.Streams[0].Items {
			size += len(it.Doc)
		}
		if size > replica.MaxPullBytes || !answer.Streams[0].More || len(answer.Streams[0].Items) < 100 {
			t.Errorf("%d items of %d bytes, more %v", len(answer.Streams[0].Items), size, answer.Streams[0].More)
		}
		if items := d.all(memory); len(items) != 141 {
			t.Errorf("%d items in all", len(items))
		}
	})
}

// waiting starts a pull that waits, and returns a channel for its response.
func (d *device) waiting(c ...replica.Cursor) <-chan replica.PullResponse {
	out := make(chan replica.PullResponse, 1)
	go func() {
		var answer replica.PullResponse
		d.request("POST", replica.PathPull, replica.PullRequest{Cursors: c, WaitMillis: 20_000}, &answer)
		out <- answer
	}()
	return out
}

func TestAWaitingPullWakesWithTheFirstItem(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		here := open(t, address)
		d := here.device("new", hub.LevelAdmin)
		memory := d.memory()
		elsewhere := open(t, address) // another hub with the same database
		far := d.other(elsewhere)
		at := replica.Cursor{Stream: memory, After: 1}
		near, remote := d.waiting(at), far.waiting(at)
		began := time.Now()
		d.want([]int{201}, entryPut(memory, "news"))
		for _, waiting := range []<-chan replica.PullResponse{near, remote} {
			if a := <-waiting; len(a.Streams) != 1 || len(a.Streams[0].Items) != 1 || a.HubEpoch != 1 {
				t.Errorf("woken with %+v", a)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("woken after %s", took)
		}
	})
}

func TestStoppingEndsWaitingPullsAtOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		d := o.device("new", hub.LevelAdmin)
		waiting := d.waiting(replica.Cursor{Stream: d.memory(), After: 1})
		began := time.Now()
		o.hub.Stop()
		if a := <-waiting; len(a.Streams) != 0 || time.Since(began) > 10*time.Second {
			t.Errorf("ended after %s with %+v", time.Since(began), a)
		}
	})
}

func TestHeadsListTheUsersStreamsPageByPage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		d := o.device("new", hub.LevelAdmin)
		o.device("new", hub.LevelAdmin).memory() // another user's
		vault := uuid()
		want := map[string]int64{vault: 1}
		d.want([]int{201}, vaultPut(vault, "work"))
		for i := range 4 {
			id, unlogged := uuid(), uuid()
			title := "work"
			if i == 0 {
				title = "carried" // a vault that only a memory has named
				want[unlogged] = 0
			}
			d.want([]int{201, 201}, memoryPut(id, fmt.Sprint("m", i), unlogged, title), entryPut(id, "x"))
			want[id] = 2
		}
		gone := d.memory()
		d.want([]int{204}, item(gone, "memory", "delete", gone, object{}))
		for _, limit := range []int{1, 2, 3, 1000} {
			got, after := map[string]int64{}, ""
			for pages := 0; ; pages++ {
				if pages > 20 {
					t.Fatal("the pages never end")
				}
				var answer replica.HeadsResponse
				d.request("GET", fmt.Sprintf("%s?limit=%d&after=%s", replica.PathHeads, limit, after), nil, &answer)
				for _, h := range answer.Heads {
					if _, twice := got[h.Stream]; twice || (h.Vault == nil) == (h.Memory == nil) {
						t.Errorf("head %+v", h)
					}
					got[h.Stream] = h.HeadSeq
				}
				if after = answer.Next; after == "" {
					break
				}
			}
			for id, seq := range want {
				if got[id] != seq {
					t.Errorf("limit %d: head of %s is %d, want %d", limit, id, got[id], seq)
				}
			}
			if len(got) != len(want)+1 { // and the vault of the deleted memory
				t.Errorf("limit %d: %d heads, want %d", limit, len(got), len(want)+1)
			}
		}
	})
}

func TestEntriesAreReadThroughInPages(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		d := open(t, address).device("new", hub.LevelAdmin)
		memory, session := d.memory(), uuid()
		for i := range 6 {
			more := object{"capturedTime": text(noon.Add(time.Duration(i-10) * time.Minute))}
			if i%2 == 0 {
				more["tags"], more["sessionId"] = object{"even": "yes", "n": fmt.Sprint(i)}, session
			}
			d.want([]int{201}, entryPut(memory, fmt.Sprint(i), more))
		}
		read := func(query string) string {
			var out []string
			for _, e := range d.entries(memory, query) {
				out = append(out, e["rawEntry"].(string))
			}
			return strings.Join(out, "")
		}
		at := func(i int) string { return text(noon.Add(time.Duration(i-10) * time.Minute)) }
		for query, want := range map[string]string{
			"":                                      "543210",
			"&limit=2":                              "54",
			"&limit=2&before=" + at(4):              "32",
			"&limit=2&after=" + at(1):               "32", // the oldest of the newer ones
			"&tag=even:yes":                         "420",
			"&tag=even:yes&limit=1&before=" + at(4): "2",
			"&tag=even:yes&tag=n:0":                 "0",
			"&session_id=" + session + "&limit=2":   "42",
			"&tag=even:no":                          "",
		} {
			if got := read(query); got != want {
				t.Errorf("%q: %s, want %s", query, got, want)
			}
		}
		var page replica.EntriesResponse
		d.request("GET", replica.PathEntries+"?memory="+memory+"&limit=6", nil, &page)
		if page.More {
			t.Error("there is more behind the last entry")
		}
		d.request("GET", replica.PathEntries+"?memory="+memory+"&limit=5", nil, &page)
		if !page.More {
			t.Error("there is nothing more before the last entry")
		}
		for _, query := range []string{"&before=" + at(1) + "&after=" + at(2), "&before=soon", "&tag=x", "&limit=many", "&entry=x", "&session_id=x"} {
			if status, _ := d.request("GET", replica.PathEntries+"?memory="+memory+query, nil, nil); status != 400 {
				t.Errorf("%q: %d", query, status)
			}
		}
	})
}

// No status, count or error reveals another user's data (P9).
func TestAStrangersStreamsAreLikeMissingOnes(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		owner, stranger := o.device("new", hub.LevelAdmin), o.device("new", hub.LevelAdmin)
		memory := owner.memory()
		put := entryPut(memory, "mine")
		entry := owner.want([]int{201}, put)[0].EntryID
		missing := uuid()
		answers := func(memory string) string {
			var told []string
			for _, it := range []replica.Item{
				entryPut(memory, "x"), entryPatch(memory, entry, object{"summary": "s"}), entryDelete(memory, entry), contextPut(memory, "x", noon),
				item(memory, "memory", "delete", memory, object{}),
			} {
				r := stranger.push(it)[0]
				told = append(told, fmt.Sprint(r.Status, r.Error.Code, r.Error.Message, r.EntryID, r.HubSeq))
			}
			same := put
			same.Stream = memory
			r := stranger.push(same)[0]
			status, _ := stranger.request("GET", replica.PathEntries+"?memory="+memory+"&entry="+entry, nil, nil)
			var heads replica.HeadsResponse
			stranger.request("GET", replica.PathHeads, nil, &heads)
			return fmt.Sprint(told, r.Status, r.Error.Code, status, len(stranger.pull(replica.Cursor{Stream: memory}).Streams), len(heads.Heads))
		}
		if theirs, none := answers(memory), answers(missing); theirs != none {
			t.Errorf("a stranger can tell %s from %s", theirs, none)
		}
		if items := owner.all(memory); len(items) != 2 {
			t.Errorf("the owner has %d items", len(items))
		}
	})
}

func TestARestoredBackupShowsItselfByTheEpoch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		d := o.device("new", hub.LevelRead)
		who := func() (w replica.Whoami) {
			d.request("GET", replica.PathWhoami, nil, &w)
			return w
		}
		was := who()
		if was.HubEpoch != 1 || was.UserID != d.user || was.Level != "read" || was.Device != "desk" || len(was.HubID) != 36 {
			t.Errorf("whoami: %+v", was)
		}
		epoch, err := o.hub.Restored(context.Background())
		if epoch <= was.HubEpoch || err != nil {
			t.Fatal(epoch, err)
		}
		if now := who(); now.HubEpoch != epoch || now.HubID != was.HubID {
			t.Errorf("afterwards: %+v", now)
		}
		var heads replica.HeadsResponse
		d.request("GET", replica.PathHeads, nil, &heads)
		if heads.HubEpoch != epoch {
			t.Errorf("heads tell epoch %d", heads.HubEpoch)
		}
	})
}
