package hub_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/hub"
	"cairn/internal/replica"
)

func TestOnlyValidTokensAreLetInAndOnlyAsFarAsTheyReach(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		admin := o.device("new", hub.LevelAdmin)
		memory := admin.memory()
		reader, writer := o.device(admin.user, hub.LevelRead), o.device(admin.user, hub.LevelWrite)
		push := replica.PushRequest{DeviceID: "d", Items: []replica.Item{entryPut(memory, "x")}}
		push.Items[0].Seq = 1
		if status, _ := reader.request("POST", replica.PathPush, push, nil); status != 403 {
			t.Errorf("a reader pushes with %d", status)
		}
		if n := len(reader.all(memory)); n != 1 {
			t.Errorf("a reader pulls %d items", n)
		}
		if r := writer.want([]int{201, 403, 424}, entryPut(memory, "x"), entryDelete(memory, uuid()), entryPut(memory, "y")); r[1].Error.Code != "forbidden" {
			t.Errorf("a writer deletes: %+v", r[1].Error)
		}
		for name, token := range map[string]string{"none": "", "unknown": "x" + admin.token, "basic": "Basic " + admin.token} {
			status, header := ask(t, "GET", o.url+replica.PathWhoami, token, nil, nil)
			if status != 401 || header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %d", name, status)
			}
		}
		short, _, err := o.hub.CreateToken(t.Context(), hub.TokenArgs{UserID: admin.user, Expires: time.Hour})
		if err != nil || !short.Expires.Equal(noon.Add(time.Hour)) {
			t.Fatal(short, err)
		}
		_, secret, err := o.hub.CreateToken(t.Context(), hub.TokenArgs{UserID: admin.user, Expires: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		who := func() int {
			status, _ := ask(t, "GET", o.url+replica.PathWhoami, secret, nil, nil)
			return status
		}
		if who() != 200 {
			t.Error("a token is refused before it expires")
		}
		o.clock.set(noon.Add(time.Hour))
		if who() != 401 {
			t.Error("a token is accepted after it expired")
		}
	})
}

func TestARevokedTokenIsRefusedWithinAMinute(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		d := o.device("new", hub.LevelAdmin)
		tokens, err := o.hub.Tokens(t.Context())
		if err != nil || len(tokens) != 1 || tokens[0].UserID != d.user || tokens[0].LastUsed != "" {
			t.Fatal(tokens, err)
		}
		d.request("GET", replica.PathWhoami, nil, nil)
		if tokens, err = o.hub.Tokens(t.Context()); err != nil || tokens[0].LastUsed != "2030-01-02" {
			t.Errorf("the day of use: %+v %v", tokens, err)
		}
		if k, err := o.hub.Revoke(t.Context(), tokens[0].ID); err != nil || k.Revoked.IsZero() {
			t.Fatal(k, err)
		}
		if _, err := o.hub.Revoke(t.Context(), tokens[0].ID[:8]); err != nil {
			t.Errorf("revoking twice: %v", err)
		}
		o.hub.Forget() // as after half a minute
		if status, _ := d.request("GET", replica.PathWhoami, nil, nil); status != 401 {
			t.Errorf("a revoked token gets %d", status)
		}
		if _, err := o.hub.Revoke(t.Context(), "000000"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("no token: %v", err)
		}
		if hub.TokenMemory > time.Minute {
			t.Errorf("a token is trusted for %s", hub.TokenMemory)
		}
	})
}

func TestTokenArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	o := open(t, "sqlite:"+t.TempDir()+"/hub.db")
	for _, a := range []hub.TokenArgs{
		{UserID: ""}, {UserID: "me"}, {UserID: "new", Level: "root"}, {UserID: "new", Expires: -1},
		{UserID: "new", Device: strings.Repeat("x", 65)}, {UserID: "new", Device: "a\x1b[2J"},
	} {
		if _, secret, err := o.hub.CreateToken(t.Context(), a); fault.KindOf(err) != fault.Invalid || secret != "" {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

func TestWrongRequestsAreRefusedAsAWholeInTheEnvelope(t *testing.T) {
	t.Parallel()
	d := open(t, "sqlite:"+t.TempDir()+"/hub.db").device("new", hub.LevelAdmin)
	memory := d.memory()
	good := entryPut(memory, "x")
	good.Seq = 10
	items := func(seqs ...int64) replica.PushRequest {
		req := replica.PushRequest{DeviceID: "d"}
		for _, s := range seqs {
			it := entryPut(memory, "x")
			it.Seq = s
			req.Items = append(req.Items, it)
		}
		return req
	}
	many := replica.PullRequest{}
	for range 1001 {
		many.Cursors = append(many.Cursors, replica.Cursor{Stream: uuid()})
	}
	for name, c := range map[string]struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		"not ascending":     {"POST", replica.PathPush, items(2, 1), 400, "validation_error"},
		"twice":             {"POST", replica.PathPush, items(2, 2), 400, "validation_error"},
		"seq 0":             {"POST", replica.PathPush, items(0), 400, "validation_error"},
		"no items":          {"POST", replica.PathPush, replica.PushRequest{DeviceID: "d"}, 400, "validation_error"},
		"no device":         {"POST", replica.PathPush, replica.PushRequest{Items: []replica.Item{good}}, 400, "validation_error"},
		"unknown member":    {"POST", replica.PathPush, []byte(`{"device_id":"d","items":[],"more":1}`), 400, "validation_error"},
		"trailing":          {"POST", replica.PathPush, []byte(`{"device_id":"d","items":[]} {}`), 400, "validation_error"},
		"no JSON":           {"POST", replica.PathPush, []byte(`]`), 400, "validation_error"},
		"empty":             {"POST", replica.PathPush, nil, 400, "validation_error"},
		"too long":          {"POST", replica.PathPush, bytes.Repeat([]byte(" "), replica.MaxPushBody+1), 413, "body_too_large"},
		"GET":               {"GET", replica.PathPush, nil, 405, "method_not_allowed"},
		"no cursors":        {"POST", replica.PathPull, replica.PullRequest{}, 400, "validation_error"},
		"too many cursors":  {"POST", replica.PathPull, many, 400, "validation_error"},
		"a cursor twice":    {"POST", replica.PathPull, replica.PullRequest{Cursors: []replica.Cursor{{Stream: memory}, {Stream: memory}}}, 400, "validation_error"},
		"a negative cursor": {"POST", replica.PathPull, replica.PullRequest{Cursors: []replica.Cursor{{Stream: memory, After: -1}}}, 400, "validation_error"},
		"a strange page":    {"GET", replica.PathHeads + "?after=zzz", nil, 400, "validation_error"},
		"no route":          {"GET", "/v1/hub/nothing", nil, 404, "not_found"},
		"entries of none":   {"GET", replica.PathEntries, nil, 400, "validation_error"},
	} {
		var e fault.Envelope
		status, _ := d.request(c.method, c.path, c.body, &e)
		if status != c.status || e.Error.Code != c.code || e.Error.Message == "" || e.Error.Details == nil {
			t.Errorf("%s: %d %+v, want %d %s", name, status, e.Error, c.status, c.code)
		}
	}
	if n := len(d.all(memory)); n != 1 {
		t.Errorf("wrong requests left %d items", n-1)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", d.url+replica.PathWhoami, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	r.Header.Set("Origin", "https://page.example")
	if answer, err := http.DefaultClient.Do(r); err != nil || answer.StatusCode != 403 || answer.Body.Close() != nil {
		t.Errorf("from a page: %v %v", answer, err)
	}
}

// Each rule of memories §5 that an item can violate is violated once.
func TestItemsAreCheckedAsDevicesCheckThem(t *testing.T) {
	t.Parallel()
	d := open(t, "sqlite:"+t.TempDir()+"/hub.db").device("new", hub.LevelAdmin)
	memory := d.memory()
	one := d.want([]int{201}, entryPut(memory, "one"))[0].EntryID
	deep := strings.Repeat(`{"a":`, 9) + "1" + strings.Repeat("}", 9)
	tags := object{}
	for i := range 33 {
		tags[fmt.Sprint(i)] = ""
	}
	raw := func(doc string) replica.Item {
		it := entryPut(memory, "x")
		it.Doc = json.RawMessage(doc)
		return it
	}
	const captured = `"capturedTime":"2030-01-01T00:00:00Z"`
	for name, c := range map[string]struct {
		item   replica.Item
		status int
		code   string
	}{
		"blank":               {entryPut(memory, " \n"), 400, "validation_error"},
		"long":                {entryPut(memory, strings.Repeat("é", 9001)), 413, "entry_too_large"},
		"summary":             {entryPut(memory, "x", object{"summary": strings.Repeat("é", 513)}), 400, "validation_error"},
		"tags":                {entryPut(memory, "x", object{"tags": tags}), 400, "validation_error"},
		"tag key":             {entryPut(memory, "x", object{"tags": object{"": "v"}}), 400, "validation_error"},
		"tag value":           {entryPut(memory, "x", object{"tags": object{"k": 1}}), 400, "validation_error"},
		"tags as array":       {entryPut(memory, "x", object{"tags": []int{}}), 400, "validation_error"},
		"metadata deep":       {entryPut(memory, "x", object{"metadata": json.RawMessage(deep)}), 400, "validation_error"},
		"metadata big":        {entryPut(memory, "x", object{"metadata": object{"a": strings.Repeat("x", 16<<10)}}), 400, "validation_error"},
		"metadata as text":    {entryPut(memory, "x", object{"metadata": "{}"}), 400, "validation_error"},
		"session":             {entryPut(memory, "x", object{"sessionId": "s"}), 400, "validation_error"},
		"no captured time":    {entryPut(memory, "x", object{"capturedTime": ""}), 400, "validation_error"},
		"time beyond numbers": {entryPut(memory, "x", object{"capturedTime": "9999-01-01T00:00:00Z"}), 400, "validation_error"},
		"proposed no v4":      {entryPut(memory, "x", object{"entryId": "5f0c1d2e-0000-1000-8000-000000000000"}), 400, "validation_error"},
		"lone surrogate":      {raw(`{"rawEntry":"\ud800",` + captured + `}`), 400, "validation_error"},
		"low surrogate":       {raw(`{"rawEntry":"\udc00",` + captured + `}`), 400, "validation_error"},
		"NUL":                 {raw(`{"rawEntry":"a\u0000b",` + captured + `}`), 400, "validation_error"},
		"array":               {raw(`[]`), 400, "validation_error"},
		"null":                {raw(`null`), 400, "validation_error"},
		"empty patch":         {entryPatch(memory, one, object{}), 400, "validation_error"},
		"patch and correct":   {entryPatch(memory, one, object{"summary": "", "correctedEntryId": one}), 400, "validation_error"},
		"corrects itself":     {correction(memory, one, one), 400, "validation_error"},
		"no reason":           {entryPatch(memory, one, object{"correctedEntryId": uuid(), "correctionTime": text(noon)}), 400, "validation_error"},
		"context blank":       {contextPut(memory, " ", noon), 400, "validation_error"},
		"context long":        {contextPut(memory, strings.Repeat("é", 5001), noon), 413, "context_too_large"},
		"context control":     {contextPut(memory, "a\x1bb", noon), 400, "validation_error"},
		"context nothing":     {contextPut(memory, "a\ufdd0b", noon), 400, "validation_error"},
		"title empty":         {memoryPut(uuid(), "", uuid(), "v"), 400, "validation_error"},
		"title long":          {memoryPut(uuid(), strings.Repeat("x", 51), uuid(), "v"), 400, "validation_error"},
		"title strange":       {memoryPut(uuid(), "a b", uuid(), "v"), 400, "validation_error"},
		"vault's title":       {memoryPut(uuid(), "m", uuid(), "ä"), 400, "validation_error"},
		"another memory's id": {item(memory, "memory", "put", memory, object{"memoryId": uuid()}), 400, "validation_error"},
		"no op":               {item(memory, "entry", "undelete", one, object{"entryId": one}), 400, "validation_error"},
		"no kind":             {item(memory, "mail", "put", one, object{}), 400, "validation_error"},
		"context patch":       {item(memory, "context", "patch", one, object{}), 400, "validation_error"},
		"a vault's kind":      {item(memory, "vault", "delete", memory, object{}), 400, "validation_error"},
		"no stream":           {entryPut("default", "x"), 400, "validation_error"},
		"delete by localId":   {item(memory, "entry", "delete", "pending-1", object{"localId": "pending-1"}), 400, "validation_error"},
	} {
		r := d.push(c.item)[0]
		if r.Status != c.status || r.Error == nil || r.Error.Code != c.code || r.Error.Message == "" {
			t.Errorf("%s: %d %+v, want %d %s", name, r.Status, r.Error, c.status, c.code)
		}
	}
	bad := entryPut(memory, "x")
	for _, key := range []string{"", strings.Repeat("k", 65), "a\nb", "ä"} {
		bad.Key, bad.Seq = key, 0
		if r := d.push(bad)[0]; r.Status != 400 {
			t.Errorf("key %q: %d", key, r.Status)
		}
	}
	odd := entryPut(memory, "a\x01\u2028𝄞</script>\"\\", object{"metadata": object{"n": json.Number("12345678901234567890")}})
	d.want([]int{201}, odd)
	entry := d.entries(memory, "&limit=1")[0]
	if entry["rawEntry"] != "a\x01\u2028𝄞</script>\"\\" {
		t.Errorf("the text came back as %q", entry["rawEntry"])
	}
	if last := d.all(memory); !bytes.Contains(last[len(last)-1].Doc, []byte(`"n":12345678901234567890`)) {
		t.Errorf("metadata came back as %s", last[len(last)-1].Doc)
	}
}

func TestInvalidUTF8IsRefusedItemByItem(t *testing.T) {
	t.Parallel()
	d := open(t, "sqlite:"+t.TempDir()+"/hub.db").device("new", hub.LevelAdmin)
	memory, other := d.memory(), d.memory()
	good := entryPut(other, "fine")
	good.Seq = 101
	text, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"device_id":"d","items":[{"stream":%q,"seq":100,"kind":"entry","id":"pending-1","op":"put","key":"k1","doc":`+
		`{"rawEntry":"a%sb","capturedTime":"2030-01-01T00:00:00Z"}},%s]}`, memory, "\xff", text)
	var answer replica.PushResponse
	if status, _ := d.request("POST", replica.PathPush, []byte(body), &answer); status != 200 || answer.Results[0].Status != 400 || answer.Results[1].Status != 201 {
		t.Errorf("%d %+v", status, answer.Results)
	}
}

func TestHealthNeedsNoTokenAndMetricsCountItems(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		o := open(t, address)
		var health struct{ Status, Version string }
		if status, _ := ask(t, "GET", o.url+replica.PathHealth, "", nil, &health); status != 200 || health.Status != "healthy" || health.Version != "test" {
			t.Errorf("health: %d %+v", status, health)
		}
		d := o.device("new", hub.LevelAdmin)
		memory := d.memory()
		d.push(entryPut(memory, "x"), entryPut(memory, ""))
		var text bytes.Buffer
		o.hub.WriteMetrics(&text)
		for _, want := range []string{`cairn_hub_items_total{status="201"} 2`, `cairn_hub_items_total{status="400"} 1`, "cairn_hub_pool_in_use 0", "# TYPE cairn_hub_tx_retries_total counter"} {
			if !strings.Contains(text.String(), want+"\n") {
				t.Errorf("metrics lack %s:\n%s", want, &text)
			}
		}
		if status, _ := ask(t, "GET", o.url+"/metrics", "", nil, nil); status != 401 {
			t.Errorf("metrics without a token: %d", status)
		}
		if status, _ := ask(t, "GET", o.url+"/metrics", d.token, nil, nil); status != 200 {
			t.Errorf("metrics: %d", status)
		}
	})
}

func TestRequestsAreCorrelated(t *testing.T) {
	t.Parallel()
	d := open(t, "sqlite:"+t.TempDir()+"/hub.db").device("new", hub.LevelAdmin)
	send := func(id, trace string) http.Header {
		r, err := http.NewRequestWithContext(t.Context(), "GET", d.url+replica.PathWhoami, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+d.token)
		r.Header.Set("Request-Id", id)
		r.Header.Set("Traceparent", trace)
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.Body.Close() != nil {
			t.Fatal(err)
		}
		return answer.Header
	}
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if h := send("r-1", trace); h.Get("Request-Id") != "r-1" || h.Get("Traceparent") != trace {
		t.Errorf("echoed: %v", h)
	}
	if h := send(strings.Repeat("x", 65), "ä"); len(h.Get("Request-Id")) != 36 || h.Get("Traceparent") != "" {
		t.Errorf("instead of what cannot be used: %v", h)
	}
}
