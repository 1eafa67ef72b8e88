package hub

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"cairn/internal/replica"
)

// For any push, an accepted item is returned as JSON with the same text, and its stored form
// passes the checks again.
func FuzzPush(f *testing.F) {
	const stream = "5f0c1d2e-0000-4000-8000-000000000001"
	for _, doc := range []string{
		`{"rawEntry":"a","tags":{"k":"v"},"metadata":{"a":[1,{"b":null}]},"capturedTime":"2030-01-01T00:00:00Z"}`,
		`{"entryId":"` + stream + `","rawEntry":"\ud834\udd1e","capturedTime":"2030-01-01T00:00:00.000000001+02:00"}`,
		`{"rawEntry":"\ud834","capturedTime":"2030-01-01T00:00:00Z"}`,
	} {
		f.Add([]byte(`{"device_id":"d","items":[{"stream":"` + stream + `","seq":1,"kind":"entry","id":"pending-1","op":"put","key":"k","doc":` + doc + `}]}`))
	}
	f.Add([]byte(`{"device_id":"d","items":[{"stream":"` + stream + `","seq":1,"kind":"entry","id":"x","op":"patch","key":"k","doc":{"entryId":"` + stream + `","summary":"s"}}]}`))
	f.Add([]byte(`{"device_id":"d","items":[{"stream":"` + stream + `","seq":1,"kind":"context","id":"x","op":"put","key":"k","doc":{"contextId":"` + stream +
		`","sessionId":"` + stream + `","markdown":"# a","updatedAt":"2030-01-01T00:00:00Z"}}]}`))
	f.Add([]byte(`{"device_id":"d","items":[{"stream":"` + stream + `","seq":1,"kind":"memory","id":"x","op":"put","key":"k","doc":{"memoryId":"` + stream +
		`","memoryType":"chat","title":"t","creationTime":"2030-01-01T00:00:00Z","vault":{"vaultId":"` + stream + `","title":"v","creationTime":"2030-01-01T00:00:00Z"}}}]}`))
	h := &Hub{maxContext: standardContext}
	f.Fuzz(func(t *testing.T, body []byte) {
		var req replica.PushRequest
		if decodeBody(body, &req) != nil {
			return
		}
		batches, err := h.divide(req)
		if err != nil {
			return
		}
		items := 0
		for _, b := range batches {
			items += len(b.at)
			if len(b.items) < len(b.at) && b.bad == nil {
				t.Fatal("an item is neither taken nor refused")
			}
			for _, in := range b.items {
				text, err := in.doc.canonical()
				if err != nil || !utf8.ValidString(text) {
					t.Fatalf("%q cannot be stored: %v", text, err)
				}
				again, err := h.parse(replica.Item{Stream: b.stream, Seq: in.seq, Kind: in.kind, Op: in.op, Key: in.key, Doc: json.RawMessage(text)})
				if err != nil && in.kind != replica.KindContext || err == nil && (again.doc.RawEntry != in.doc.RawEntry || again.hash != in.hash) {
					t.Fatalf("%s came back otherwise: %+v", text, err)
				}
			}
		}
		if items != len(req.Items) {
			t.Fatalf("%d of %d items were sorted", items, len(req.Items))
		}
	})
}

// Any pull request is refused or within all limits.
func FuzzPull(f *testing.F) {
	f.Add([]byte(`{"cursors":[{"stream":"5f0c1d2e-0000-4000-8000-000000000001","after":3}],"limit":7,"wait_ms":99999999}`))
	f.Add([]byte(`{"cursors":[{"stream":"x","after":-1}],"limit":-1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var req replica.PullRequest
		if decodeBody(body, &req) != nil {
			return
		}
		limit, err := validatePull(&req)
		if err != nil {
			return
		}
		if limit < 1 || limit > replica.MaxPullItems || req.WaitMillis < 0 || req.WaitMillis > replica.MaxWaitMillis || len(req.Cursors) > replica.MaxCursors {
			t.Fatalf("let through: limit %d, %+v", limit, req)
		}
	})
}
