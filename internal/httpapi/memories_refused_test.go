package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/rules"
)

// TestWhatIsNoArgumentIsRefusedOnItsField covers memories §5.1 and §5.3.
func TestWhatIsNoArgumentIsRefusedOnItsField(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	e := d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"one"}`, "entryId")
	const entries, one = "/v1/memories/{m}/entries", "/v1/memories/{m}/entries/{e}"
	ctx, session := "/v1/memories/{m}/context", `"session_id":"`+rules.NewID()+`"`
	many := `"k":"v"`
	for i := range 32 {
		many += `,"k` + strconv.Itoa(i) + `":"v"`
	}
	deep := strings.Repeat(`{"a":`, 9) + "1" + strings.Repeat("}", 9)
	for _, c := range []struct{ method, path, body, field string }{
		// The body as a whole.
		{"POST", entries, `{`, "body"},
		{"POST", entries, `nothing`, "body"},
		{"POST", entries, `[]`, "body"},
		{"POST", entries, `null`, "body"},
		{"POST", entries, `"x"`, "body"},
		{"POST", entries, `{"rawEntry":"x"} {}`, "body"},
		{"POST", entries, `{"rawEntry":"x"}]`, "body"},
		{"POST", entries, `{"rawEntry":"x",}`, "body"},
		{"POST", entries, "{\"rawEntry\":\"\xff\"}", "body"},
		{"POST", entries, `{"rawEntry":"x","rawEntry":"y"}`, "rawEntry"},
		{"POST", entries, `{"rawEntry":"x","context":"c"}`, "context"},
		{"POST", entries, `{"rawEntry":"x","expirationTime":"2030-01-01T00:00:00Z"}`, "expirationTime"},
		{"POST", entries, `{"rawEntry":"x","RawEntry":"y"}`, "RawEntry"},
		{"POST", entries + "?colour=red", `{"rawEntry":"x"}`, "colour"},
		{"POST", "/v1/vaults", `{"title":"x","colour":1}`, "colour"},
		{"POST", one + ":delete", `{"x":1}`, "x"},
		{"POST", "/v1/replication:pause", `{"x":1}`, "x"},
		// Entries.
		{"POST", entries, ``, "rawEntry"},
		{"POST", entries, `{}`, "rawEntry"},
		{"POST", entries, `{"rawEntry":null}`, "rawEntry"},
		{"POST", entries, `{"rawEntry":" \n\t "}`, "rawEntry"},
		{"POST", entries, `{"rawEntry":7}`, "rawEntry"},
		{"POST", entries, `{"rawEntry":"a\u0000b"}`, "rawEntry"},
		{"POST", entries, `{"rawEntry":"a\ud800b"}`, "rawEntry"},
		{"POST", entries, `{"rawEntry":"a\udc00\ud800b"}`, "rawEntry"},
		{"POST", entries, `{"rawEntry":"x","summary":"` + strings.Repeat("s", 513) + `"}`, "summary"},
		{"POST", entries, `{"rawEntry":"x","summary":7}`, "summary"},
		{"POST", entries, `{"rawEntry":"x","tags":null}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","tags":[]}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","tags":"k:v"}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","tags":{"k":1}}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","tags":{"k":null}}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","tags":{"":"v"}}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","tags":{"k":"\ud800"}}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","tags":{"` + strings.Repeat("k", 65) + `":"v"}}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","tags":{"k":"` + strings.Repeat("v", 257) + `"}}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","tags":{` + many + `}}`, "tags"},
		{"POST", entries, `{"rawEntry":"x","metadata":null}`, "metadata"},
		{"POST", entries, `{"rawEntry":"x","metadata":"m"}`, "metadata"},
		{"POST", entries, `{"rawEntry":"x","metadata":7}`, "metadata"},
		{"POST", entries, `{"rawEntry":"x","metadata":[1]}`, "metadata"},
		{"POST", entries, `{"rawEntry":"x","metadata":{"a":"\udfff"}}`, "metadata"},
		{"POST", entries, `{"rawEntry":"x","metadata":{"a":"` + strings.Repeat("v", 16<<10) + `"}}`, "metadata"},
		{"POST", entries, `{"rawEntry":"x","metadata":` + deep + `}`, "metadata"},
		{"POST", entries, `{"rawEntry":"x","sessionId":""}`, "sessionId"},
		{"POST", entries, `{"rawEntry":"x","sessionId":"s"}`, "sessionId"},
		{"POST", entries, `{"rawEntry":"x","sessionId":7}`, "sessionId"},
		{"POST", entries, `{"rawEntry":"x","sessionId":"S-0000"}`, "sessionId"},
		// Users and ids.
		{"GET", "/v1/memories/x", ``, "memory_id"},
		{"GET", "/v1/memories/Default", ``, "memory_id"},
		{"GET", "/v1/memories//entries", ``, "memory_id"},
		{"GET", "/v1/memories/urn:uuid:" + absent + "/entries", ``, "memory_id"},
		{"GET", "/v1/memories/%7B" + absent + "%7D", ``, "memory_id"},
		{"GET", "/v1/vaults/x", ``, "vault_id"},
		{"GET", "/v1/vaults?user_id=", ``, "user_id"},
		{"GET", "/v1/vaults?user_id=me", ``, "user_id"},
		{"GET", "/v1/vaults?user_id=" + absent + "&user_id=" + absent, ``, "user_id"},
		{"GET", "/v1/vaults?project=%FF", ``, "project"},
		{"GET", entries + "/x", ``, "entry_id"},
		{"GET", entries + "/pending-1", ``, "entry_id"},
		{"DELETE", entries + "/x", ``, "entry_id"},
		// Lists.
		{"GET", entries + "?limit=", ``, "limit"},
		{"GET", entries + "?limit=2.5", ``, "limit"},
		{"GET", entries + "?limit=abc", ``, "limit"},
		{"GET", entries + "?limit=%203", ``, "limit"},
		{"GET", entries + "?limit=true", ``, "limit"},
		{"GET", entries + "?limit=3&limit=3", ``, "limit"},
		{"GET", entries + "?limit=[3]", ``, "limit"},
		{"GET", "/v1/memories/{m}/inflight?limit=1e-1", ``, "limit"},
		{"GET", "/v1/memories/{m}/top?k=x", ``, "k"},
		{"GET", "/v1/memories/{m}/top?query=%20", ``, "query"},
		{"GET", "/v1/memories/{m}/top?query=", ``, "query"},
		{"GET", entries + "?before=yesterday", ``, "before"},
		{"GET", entries + "?before=", ``, "before"},
		{"GET", entries + "?after=" + absent, ``, "after"},
		{"GET", entries + "?before={e}&after={e}", ``, "before"},
		{"GET", entries + "?session_id=", ``, "session_id"},
		{"GET", entries + "?session_id=s", ``, "session_id"},
		{"GET", entries + "?tag=k", ``, "tag"},
		{"GET", entries + "?tag=k:%00", ``, "tag"},
		{"GET", entries + "?x=1", ``, "x"},
		{"GET", entries + "?limit=%zz", ``, "query"},
		{"GET", "/v1/memories/{m}/export?after=x", ``, "after"},
		// Changes.
		{"PATCH", one, `{}`, "tags"},
		{"PATCH", one, ``, "tags"},
		{"PATCH", one, `{"summary":null}`, "tags"},
		{"PATCH", one, `{"tags":null}`, "tags"},
		{"PATCH", one + "/tags", `{"tags":["k"]}`, "tags"},
		{"PATCH", one, `{"summary":7}`, "summary"},
		{"POST", one + ":correct", `{"reason":"r"}`, "correctedEntryId"},
		{"POST", one + ":correct", `{"correctedEntryId":"{e}","reason":"r"}`, "correctedEntryId"},
		{"POST", one + ":correct", `{"correctedEntryId":"` + absent + `"}`, "reason"},
		{"POST", one + ":correct", `{"correctedEntryId":"` + absent + `","reason":"` + strings.Repeat("r", 501) + `"}`, "reason"},
		// Vaults and memories.
		{"POST", "/v1/vaults", `{}`, "title"},
		{"POST", "/v1/vaults", `{"title":"a b"}`, "title"},
		{"POST", "/v1/vaults", `{"title":"é"}`, "title"},
		{"POST", "/v1/vaults", `{"title":"` + strings.Repeat("t", 51) + `"}`, "title"},
		{"POST", "/v1/vaults", `{"title":7}`, "title"},
		{"POST", "/v1/vaults", `{"title":"x","description":"` + strings.Repeat("d", 501) + `"}`, "description"},
		{"POST", "/v1/vaults/{v}/memories", `{"title":"x","memoryType":""}`, "memoryType"},
		{"POST", "/v1/vaults/{v}/memories", `{"title":"x","memoryType":"A"}`, "memoryType"},
		{"POST", "/v1/vaults/{v}/memories", `{"title":"x","memoryType":"` + strings.Repeat("t", 51) + `"}`, "memoryType"},
		// Contexts.
		{"PUT", ctx, `{` + session + `}`, "markdown"},
		{"PUT", ctx, `{` + session + `,"markdown":" "}`, "markdown"},
		{"PUT", ctx, `{"markdown":"x"}`, "session_id"},
		{"PUT", ctx, `{"session_id":"","markdown":"x"}`, "session_id"},
		{"PUT", ctx, `{"session_id":null,"markdown":"x"}`, "session_id"},
		{"PUT", ctx, `{"session_id":7,"markdown":"x"}`, "session_id"},
		{"PUT", ctx, `{"session_id":"x","markdown":"x"}`, "session_id"},
		{"PUT", ctx, `{` + session + `,"markdown":"x","content":"y"}`, "markdown"},
		{"PUT", ctx, `{` + session + `,"markdown":"a\u0001"}`, "markdown"},
		{"PUT", ctx, `{` + session + `,"markdown":"a\u007f"}`, "markdown"},
		{"PUT", ctx, `{` + session + `,"markdown":"a\u0085"}`, "markdown"},
		{"PUT", ctx, `{` + session + `,"markdown":"a\ufdd0"}`, "markdown"},
		{"PUT", ctx, `{` + session + `,"markdown":"a\uffff"}`, "markdown"},
		{"PUT", ctx, `{` + session + `,"markdown":"a\ud83f\udffe"}`, "markdown"},
		{"PUT", ctx + "?session_id=" + absent, "a\x00b", "markdown"},
		{"PUT", ctx + "?session_id=" + absent, "a\xff", "markdown"},
		{"PUT", ctx + "?session_id=" + absent, "", "markdown"},
		// Awaiting and searching.
		{"POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":-1}`, "timeout_ms"},
		{"POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":-99999999999999999999}`, "timeout_ms"},
		{"POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":2.5}`, "timeout_ms"},
		{"POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":"2.0"}`, "timeout_ms"},
		{"POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":true}`, "timeout_ms"},
		{"POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":[1]}`, "timeout_ms"},
		{"POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":{}}`, "timeout_ms"},
		{"POST", "/v1/search", `{"query":"x"}`, "memoryId"},
		{"POST", "/v1/search", `{"memoryId":"x","query":"x"}`, "memoryId"},
		{"POST", "/v1/search", `{"memoryId":"{m}"}`, "query"},
		{"POST", "/v1/search", `{"memoryId":"{m}","query":"` + strings.Repeat("q", 1001) + `"}`, "query"},
		{"POST", "/v1/search", `{"memoryId":"{m}","query":"x","topK":"abc"}`, "topK"},
		{"POST", "/v1/search", `{"memoryId":"{m}","query":"x","mode":"vector"}`, "mode"},
		{"POST", "/v1/search", `{"memoryId":"{m}","query":"x","sessionId":"s"}`, "sessionId"},
		{"POST", "/v1/replication:discard", `{}`, "local_ids"},
		{"POST", "/v1/replication:retry", `{"local_ids":["pending-1"],"all":true}`, "local_ids"},
		{"POST", "/v1/replication:retry", `{"local_ids":[1]}`, "local_ids"},
		{"POST", "/v1/replication:retry", `{"all":"yes"}`, "all"},
	} {
		ids := strings.NewReplacer("{e}", e, "{m}", d.memory)
		w := d.wants(http.StatusBadRequest, "validation_error", c.method, ids.Replace(c.path), ids.Replace(c.body))
		if got := detail(w, "field"); got != c.field {
			t.Errorf("%s %s %.80s: it is about %q, want %q: %s", c.method, c.path, c.body, got, c.field, w.Body)
		}
	}
	for _, id := range []string{
		"pending-", "pending-0", "pending-01", "Pending-1", "pending--1", "pending-+1", "pending-%201", "pending-1%20", "pending-1x", "1", absent,
		"pending-9223372036854775808", "pending-99999999999999999999", "pending-%D9%A1",
	} {
		d.wants(http.StatusBadRequest, "invalid_local_id", "GET", "/v1/memories/{m}/inflight/"+id, "")
	}
	if got := d.send("GET", entries, ""); !strings.Contains(got.Body.String(), `"count":1,`) {
		t.Errorf("something was stored: %s", got.Body)
	}
}

func TestIntegersOfAnySizeAreReadAndThenClamped(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	for text, want := range map[string]string{
		"3": "3", "3.0": "3", "3.00": "3", "-3": "25", "0": "25", "-0": "25", "50": "50", "51": "50", "007": "7", "99999999999999999999999": "50",
		"-99999999999999999999999": "25", "1e1": "", "%223%22": "",
	} {
		w := d.send("GET", "/v1/memories/{m}/entries?limit="+text, "")
		if want == "" {
			if w.Code != http.StatusBadRequest {
				t.Errorf("limit=%s: %d %s", text, w.Code, w.Body)
			}
			continue
		}
		if !strings.Contains(w.Body.String(), `"applied_limit":`+want+",") {
			t.Errorf("limit=%s: %s; want %s", text, w.Body, want)
		}
	}
	for _, text := range []string{`null`, `3`, `3.0`, `"3"`, `"-3"`, `-3`, `1e2`, `999999999999999999999999`, `"999999999999999999999999"`, `1e400`, `-1e400`} {
		d.wants(http.StatusOK, "", "POST", "/v1/search", `{"memoryId":"`+d.memory+`","query":"x","topK":`+text+`}`)
	}
	for _, text := range []string{`2.5`, `"2.5"`, `"3.0"`, `"abc"`, `""`, `" 3"`, `"3 "`, `"+3"`, `"-"`, `"1e2"`, `true`, `false`, `[]`, `[3]`, `{}`, `1e-1`} {
		d.wants(http.StatusBadRequest, "validation_error", "POST", "/v1/search", `{"memoryId":"`+d.memory+`","query":"x","topK":`+text+`}`)
	}
}

func TestWhatIsTooLongHasAStatusOfItsOwn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	session := rules.NewID()
	d.made("PUT", "/v1/memories/{m}/context", `{"session_id":"`+session+`","markdown":"kept"}`, "memory_id")
	d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"`+strings.Repeat("😀", 9000)+`"}`, "entryId")
	big := `{"rawEntry":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, c := range []struct {
		code, method, path, body string
		limit, actual            int
	}{
		{"entry_too_large", "POST", "/v1/memories/{m}/entries", `{"rawEntry":"` + strings.Repeat("é", 9001) + `"}`, 9000, 9001},
		{"context_too_large", "PUT", "/v1/memories/{m}/context", `{"session_id":"` + session + `","markdown":"` + strings.Repeat("é", 5001) + `"}`, 5000, 5001},
		{"body_too_large", "POST", "/v1/memories/{m}/entries", big, 1 << 20, len(big)},
	} {
		w := d.wants(http.StatusRequestEntityTooLarge, c.code, c.method, c.path, c.body)
		var e struct {
			Error struct{ Details struct{ Limit, Actual int } }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error.Details.Limit != c.limit || e.Error.Details.Actual != c.actual {
			t.Errorf("%s: %s", c.code, w.Body)
		}
	}
	r := httptest.NewRequest("POST", "/v1/memories/"+d.memory+"/entries", strings.NewReader(big)) // without a length
	r.Host, r.ContentLength = "localhost", -1
	r.Header.Set("Authorization", "Bearer open")
	w := httptest.NewRecorder()
	if d.ServeHTTP(w, r); w.Code != http.StatusRequestEntityTooLarge || codeOf(w) != "body_too_large" {
		t.Errorf("without a length: %d %s", w.Code, w.Body)
	}
	if got := d.send("GET", "/v1/memories/{m}/context", "").Body.String(); !strings.Contains(got, `"markdown":"kept"`) {
		t.Errorf("the context is now %s", got)
	}
}

func TestMediaTypesRoutesAndMethodsAreTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	for _, kind := range []string{"text/plain", "application/xml", "application/vnd.x+json", "multipart/form-data; boundary=x", "x", "application/x-ndjson"} {
		d.wants(http.StatusUnsupportedMediaType, "unsupported_media_type", "POST", "/v1/memories/{m}/entries", `{"rawEntry":"x"}`, "Content-Type", kind)
	}
	for _, kind := range []string{"application/json", "Application/JSON; charset=utf-8"} {
		d.wants(http.StatusCreated, "", "POST", "/v1/memories/{m}/entries", `{"rawEntry":"x"}`, "Content-Type", kind)
	}
	for _, kind := range []string{"text/markdown", "text/plain; charset=latin1", "application/octet-stream", "text/html"} {
		d.wants(http.StatusUnsupportedMediaType, "unsupported_media_type", "PUT", "/memories/{m}/context?session_id="+absent, `x`, "Content-Type", kind)
	}
	for _, path := range []string{
		"/v1/vaults/{v}/x", "/v1/memories", "/v1/memories/{m}/", "/v1/memories/{m}/entries/x/y", "/v1/memories/{m}/entries/" + absent + ":undo",
		"/v1/memories/{m}:forget", "/memories/{m}", "/memories/{m}/entries", "/v1/search/x", "/v1/prompts", "/v1/replication:start", "/v1/replication/pause",
		"/v1/memories/{m}/entries/" + absent + "%3Adelete/x",
	} {
		d.wants(http.StatusNotFound, "not_found", "POST", path, `{}`)
	}
	for path, wrong := range map[string]string{
		"/v1/vaults": "PUT", "/v1/vaults/{v}": "PATCH", "/v1/memories/{m}": "PUT", "/v1/memories/{m}/entries": "DELETE",
		"/v1/memories/{m}/entries/" + absent: "PUT", "/v1/memories/{m}/entries/" + absent + "/tags": "PUT",
		"/v1/memories/{m}/entries/" + absent + ":delete": "DELETE", "/v1/memories/{m}/inflight": "POST", "/v1/memories/{m}/inflight/pending-1": "DELETE",
		"/v1/memories/{m}/context": "POST", "/memories/{m}/context": "DELETE", "/v1/memories/{m}:await_consistency": "GET", "/v1/search": "GET",
		"/v1/prompts/chat": "POST", "/v1/replication": "POST", "/v1/replication:pause": "GET", "/v1/memories/{m}/export": "POST", "/v1/health": "POST",
	} {
		if w := d.wants(http.StatusMethodNotAllowed, "method_not_allowed", wrong, path, ``); w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", wrong, path)
		}
	}
	w := d.wants(http.StatusNotFound, "not_found", "GET", "/v1/prompts/poem", "")
	if !strings.Contains(w.Body.String(), `"allowed":["chat","code"]`) {
		t.Error(w.Body)
	}
	if w := d.send("HEAD", "/v1/memories/{m}/entries", ""); w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
}

func TestForeignAndMissingAreAlike(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	mine := d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"one"}`, "entryId")
	var other string
	err := d.cairn.Memories().Read(t.Context(), memory.Caller{}, func(ctx context.Context, b *memories.Service, _ memory.Caller) error {
		u, err := b.AddUser(ctx)
		other = u.UserID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := CreateToken(d.dir, TokenArgs{UserID: other}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/memories/{m}", ``}, {"DELETE", "/v1/memories/{m}", ``}, {"GET", "/v1/memories/{m}/entries", ``},
		{"POST", "/v1/memories/{m}/entries", `{"rawEntry":"x"}`}, {"POST", "/v1/memories/{m}/entries", `{"rawEntry":" "}`},
		{"POST", "/v1/memories/{m}/entries", `{"rawEntry":"` + strings.Repeat("x", 9001) + `"}`},
		{"GET", "/v1/memories/{m}/entries/{e}", ``}, {"PATCH", "/v1/memories/{m}/entries/{e}", `{"summary":"x"}`},
		{"DELETE", "/v1/memories/{m}/entries/{e}", ``}, {"POST", "/v1/memories/{m}/entries/{e}:correct", `{"correctedEntryId":"{e}","reason":"r"}`},
		{"GET", "/v1/memories/{m}/inflight/pending-1", ``}, {"GET", "/v1/memories/{m}/context", ``},
		{"PUT", "/v1/memories/{m}/context", `{"session_id":"{e}","markdown":"x"}`}, {"GET", "/v1/memories/{m}/top", ``},
		{"POST", "/v1/search", `{"memoryId":"{m}","query":"x"}`}, {"GET", "/v1/memories/{m}/export", ``},
		{"POST", "/v1/memories/{m}/import", `{"rawEntry":"x"}`}, {"GET", "/v1/vaults/{v}", ``}, {"DELETE", "/v1/vaults/{v}", ``},
		{"GET", "/v1/vaults/{v}/memories", ``}, {"POST", "/v1/vaults/{v}/memories", `{"title":"x"}`},
	} {
		foreign := strings.NewReplacer("{e}", mine, "{m}", d.memory)
		missing := strings.NewReplacer("{e}", mine, "{m}", absent, "{v}", absent)
		one := d.wants(http.StatusNotFound, "not_found", c.method, foreign.Replace(c.path), foreign.Replace(c.body), "Authorization", "Bearer "+secret)
		two := d.wants(http.StatusNotFound, "not_found", c.method, missing.Replace(c.path), missing.Replace(c.body), "Authorization", "Bearer "+secret)
		if one.Body.String() != two.Body.String() {
			t.Errorf("%s %s: foreign %s, missing %s", c.method, c.path, one.Body, two.Body)
		}
	}
	d.wants(http.StatusNotFound, "not_found", "GET", "/v1/vaults?user_id="+other, "")
	d.wants(http.StatusNotFound, "not_found", "POST", "/v1/memories/{m}:await_consistency?user_id="+other, "")
	d.wants(http.StatusNotFound, "not_found", "GET", "/v1/memories/{m}/inflight?user_id="+other, "")
	d.wants(http.StatusOK, "", "GET", "/v1/vaults?user_id="+strings.ToUpper(d.me()), "")
	w := d.wants(http.StatusOK, "", "GET", "/v1/memories/{m}/inflight", "", "Authorization", "Bearer "+secret)
	if w.Body.String() != `{"entries":[],"count":0,"applied_limit":25}`+"\n" {
		t.Error(w.Body)
	}
	w = d.wants(http.StatusNotFound, "not_found", "GET", "/v1/memories/{m}/context", "")
	if !strings.Contains(w.Body.String(), `"message":"context not found"`) {
		t.Error(w.Body)
	}
}

func TestConflictsHaveTheirCodes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, map[string]string{"memory.delete_timeout_ms": "50"})
	one := d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"one"}`, "entryId")
	two := d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"two"}`, "entryId")
	if w := d.wants(http.StatusConflict, "already_exists", "POST", "/v1/vaults", `{"title":"v"}`); detail(w, "existing_id") != d.vault {
		t.Error(w.Body)
	}
	if w := d.wants(http.StatusConflict, "already_exists", "POST", "/v1/vaults/{v}/memories", `{"title":"m"}`); detail(w, "existing_id") != d.memory {
		t.Error(w.Body)
	}
	d.wants(http.StatusConflict, "vault_not_empty", "DELETE", "/v1/vaults/{v}", ``)
	correction := `{"correctedEntryId":"` + two + `","reason":"r"}`
	d.wants(http.StatusOK, "", "POST", "/v1/memories/{m}/entries/"+one+":correct", correction)
	d.wants(http.StatusConflict, "immutability_violation", "POST", "/v1/memories/{m}/entries/"+one+":correct", correction)
	d.wants(http.StatusConflict, "immutability_violation", "PATCH", "/v1/memories/{m}/entries/"+one, `{"summary":"x"}`)
	d.wants(http.StatusNotFound, "already_committed", "GET", "/v1/memories/{m}/inflight/pending-1", ``)

	d.joined()
	w := d.wants(http.StatusAccepted, "", "POST", "/v1/memories/{m}/entries", `{"rawEntry":"three"}`)
	var added entries.Added
	if err := json.Unmarshal(w.Body.Bytes(), &added); err != nil || added.Status != "enqueued" || added.EntryID != "" || strings.Contains(w.Body.String(), "entryId") {
		t.Fatalf("%s, %v", w.Body, err)
	}
	list := d.wants(http.StatusOK, "", "GET", "/v1/memories/{m}/inflight", ``).Body.String()
	single := d.wants(http.StatusOK, "", "GET", "/v1/memories/{m}/inflight/"+added.LocalID, ``).Body.String()
	if inner := strings.TrimSuffix(strings.TrimPrefix(single, `{"entry":`), "}\n"); list != `{"entries":[`+inner+`],"count":1,"applied_limit":25}`+"\n" {
		t.Errorf("%s and %s differ", list, single)
	}
	local := "/v1/memories/{m}/entries/" + added.LocalID
	d.wants(http.StatusConflict, "not_committed", "PATCH", local, `{"summary":"x"}`)
	d.wants(http.StatusConflict, "not_committed", "POST", local+":correct", correction)
	d.wants(http.StatusMethodNotAllowed, "method_not_allowed", "PUT", local, `{}`)
	w = d.wants(http.StatusGatewayTimeout, "await_timeout", "POST", "/v1/memories/{m}:await_consistency", `{"timeout_ms":0}`)
	if !strings.Contains(w.Body.String(), `"paused":false,"pending":`) {
		t.Error(w.Body)
	}
	d.wants(http.StatusCreated, "", "PUT", "/v1/memories/{m}/context", `{"session_id":"`+absent+`","markdown":"mine"}`)
	w = d.wants(http.StatusOK, "", "GET", "/v1/memories/{m}/context", ``, "Accept", "text/plain")
	if h := w.Header(); w.Body.String() != "mine" || h.Get("Session-Id") != absent || h.Get("Synced") != "false" || h.Get("Updated-At") == "" {
		t.Errorf("%q %v", w.Body, h)
	}
	if w := d.send("GET", "/v1/health", ``); !strings.Contains(w.Body.String(), `"hub":"http://127.0.0.1:9","replication":{"state":"`) || !strings.Contains(w.Body.String(), `"pending":2,"failed":0}`) {
		t.Error(w.Body)
	}
	d.wants(http.StatusNoContent, "", "DELETE", local, ``)
	d.wants(http.StatusNotFound, "not_found", "GET", "/v1/memories/{m}/inflight/"+added.LocalID, ``)
}
