package hub_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/replica"
)

type object = map[string]any

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&15|64, b[8]&63|128
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var keys atomic.Int64

func newKey() string { return replica.Key("POST", "/v1/x", fmt.Sprint("k", keys.Add(1), uuid())) }

func item(stream, kind, op, id string, doc object) replica.Item {
	key := newKey()
	doc["key"] = key
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return replica.Item{Stream: stream, Kind: kind, ID: id, Op: op, Key: key, Doc: text}
}

func text(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func vaultDoc(id, title string) object {
	return object{"vaultId": id, "title": title, "description": "", "creationTime": text(noon.Add(-time.Hour))}
}

func vaultPut(id, title string) replica.Item {
	return item(id, "vault", "put", id, vaultDoc(id, title))
}

func memoryPutAt(id, title, vaultID, vaultTitle string, at time.Time) replica.Item {
	vault := vaultDoc(vaultID, vaultTitle)
	vault["creationTime"] = text(at)
	return item(id, "memory", "put", id, object{
		"memoryId": id, "vaultId": vaultID, "memoryType": "chat", "title": title, "description": "d", "creationTime": text(at), "vault": vault,
	})
}

func memoryPut(id, title, vaultID, vaultTitle string) replica.Item {
	return memoryPutAt(id, title, vaultID, vaultTitle, noon.Add(-time.Hour))
}

func entryPut(memory, raw string, more ...object) replica.Item {
	doc := object{"localId": "pending-1", "rawEntry": raw, "summary": "s", "tags": object{"k": "v"}, "sessionId": "", "capturedTime": text(noon.Add(-time.Minute))}
	for _, m := range more {
		for k, v := range m {
			doc[k] = v
		}
	}
	return item(memory, "entry", "put", "pending-1", doc)
}

func entryPatch(memory, entry string, doc object) replica.Item {
	doc["entryId"] = entry
	return item(memory, "entry", "patch", entry, doc)
}

func correction(memory, entry, target string) replica.Item {
	return entryPatch(memory, entry, object{"correctedEntryId": target, "correctionReason": "wrong", "correctionTime": text(noon)})
}

func entryDelete(memory, entry string) replica.Item {
	return item(memory, "entry", "delete", entry, object{"entryId": entry})
}

func contextPut(memory, markdown string, at time.Time) replica.Item {
	id := uuid()
	return item(memory, "context", "put", id, object{"contextId": id, "sessionId": uuid(), "markdown": markdown, "updatedAt": text(at)})
}

// memory creates a vault and a memory and returns the memory's id.
func (d *device) memory() string {
	d.Helper()
	id := uuid()
	d.want([]int{201}, memoryPut(id, "m-"+id, uuid(), "v-"+id))
	return id
}

// ask sends one request. body is encoded as JSON unless it is a byte slice.
func ask(tb testing.TB, method, url, token string, body, into any) (int, http.Header) {
	tb.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		in = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			tb.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(tb.Context(), method, url, in)
	if err != nil {
		tb.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if cerr := answer.Body.Close(); err != nil || cerr != nil {
		tb.Fatal(err, cerr)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			tb.Fatalf("%s %s: %d %s: %v", method, url, answer.StatusCode, text, err)
		}
	}
	return answer.StatusCode, answer.Header
}

// fields decodes a document.
func fields(tb testing.TB, doc json.RawMessage) object {
	tb.Helper()
	var o object
	if err := json.Unmarshal(doc, &o); err != nil {
		tb.Fatalf("%s: %v", doc, err)
	}
	return o
}
