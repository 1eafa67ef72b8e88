package httpapi

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file")

// TestAnswersHaveTheirShape compares the responses of the routes with a golden file. Ids, times
// and the prompts' texts are replaced before. -update writes the file.
func TestAnswersHaveTheirShape(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	one := d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"one <é>","summary":"s","tags":{"k":"v"},"metadata":{"a":[1]},"sessionId":"`+absent+`"}`, "entryId")
	two := d.made("POST", "/v1/memories/{m}/entries", `{"rawEntry":"two"}`, "entryId")
	var out strings.Builder
	names := strings.NewReplacer(one, "ONE", two, "TWO", d.vault, "VAULT", d.memory, "MEMORY", d.me(), "USER", absent, "SESSION")
	ids, times := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	scores, texts := regexp.MustCompile(`"score":[0-9.e-]+`), regexp.MustCompile(`"(prompt|[a-z_]+_prompt|context_summary_rules)":"(\\.|[^"\\])*"`)
	ask := func(method, path, body string, headers ...string) {
		w := d.send(method, path, strings.ReplaceAll(body, "{m}", d.memory), headers...)
		text := scores.ReplaceAllString(texts.ReplaceAllString(w.Body.String(), `"$1":"TEXT"`), `"score":N`)
		text = times.ReplaceAllString(ids.ReplaceAllString(names.Replace(text), "ID"), "TIME")
		text = regexp.MustCompile(`"uptime_s":[0-9.e-]+`).ReplaceAllString(text, `"uptime_s":N`)
		text = regexp.MustCompile(`"device":\{"id":"[0-9a-z]{26}"`).ReplaceAllString(text, `"device":{"id":"DEVICE"`)
		fmt.Fprintf(&out, "%s %s %s\n%d %s\n%s\n", method, names.Replace(path), names.Replace(body), w.Code, w.Header().Get("Content-Type"), text)
	}
	for _, c := range [][3]string{
		{"GET", "/v1/health", ``}, {"GET", "/v1/vaults", ``}, {"POST", "/v1/vaults", `{"title":"w"}`}, {"GET", "/v1/vaults/{v}/memories", ``},
		{"GET", "/v1/memories/{m}", ``}, {"POST", "/v1/memories/{m}/entries", `{"rawEntry":"three"}`}, {"GET", "/v1/memories/{m}/entries?limit=2&before=" + two, ``},
		{"GET", "/v1/memories/{m}/entries?tag=x:y", ``}, {"PATCH", "/v1/memories/{m}/entries/" + one + "/tags", `{"tags":{}}`},
		{"POST", "/v1/memories/{m}/entries/" + one + ":correct", `{"correctedEntryId":"` + two + `","reason":"r"}`},
		{"GET", "/v1/memories/{m}/inflight", ``}, {"GET", "/v1/memories/{m}/inflight/pending-1", ``}, {"GET", "/v1/memories/{m}/context", ``},
		{"PUT", "/v1/memories/{m}/context", `{"session_id":"` + absent + `","markdown":"# c"}`}, {"GET", "/memories/{m}/context", ``},
		{"POST", "/v1/search", `{"memoryId":"{m}","query":"one","sessionId":"` + absent + `"}`}, {"GET", "/v1/memories/{m}/top?k=1", ``},
		{"POST", "/v1/memories/{m}:await_consistency", ``}, {"GET", "/v1/prompts/chat", ``}, {"GET", "/v1/memories/{m}/export?limit=1", ``},
		{"GET", "/v1/replication", ``}, {"POST", "/v1/vaults", `{"title":""}`}, {"GET", "/v1/memories/{m}/nowhere", ``}, {"DELETE", "/v1/vaults/{v}", ``},
		{"POST", "/v1/memories/{m}/entries/" + one + ":delete", ``},
	} {
		ask(c[0], c[1], c[2])
	}
	ask("GET", "/memories/{m}/context", ``, "Accept", "text/plain")
	file := filepath.Join("testdata", "memories.golden")
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("answers have another shape than %s:\n%s", file, &out)
	}
}
