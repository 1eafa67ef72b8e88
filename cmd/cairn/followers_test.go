package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"cairn/internal/doctor"

	"cairn/internal/followers"
)

// followers returns the followers as reported by cairn status.
func (h *home) followers() (out followers.Account) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.cairn("status", "--json")), &out); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// TestAUserSeesAFollowerThatAlwaysFails checks that status, doctor and the metrics report the
// failure. Once the cause is gone, retry clears it immediately.
func TestAUserSeesAFollowerThatAlwaysFails(t *testing.T) {
	t.Parallel()
	p := newPosting(t)
	p.post("first")
	if out := p.cairn("status"); !strings.Contains(out, "for the archive of shop, the first since 20") || !strings.Contains(out, "no server is running") {
		t.Errorf("while no server runs, status says\n%s", out)
	}
	if err := os.WriteFile(p.dataDir()+"/archive", []byte("a file in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := p.dial("", nil)
	failing := func() (f followers.Status) {
		for _, f := range p.followers().Followers {
			if f.Follower == "archive" && f.Lane == "shop" && f.Error != "" {
				return f
			}
		}
		return f
	}
	soon(t, "status shows the failure", func() bool { return failing().Attempts > 0 })
	f := failing()
	if !f.Running || f.Behind == 0 || f.Oldest.IsZero() || f.Since.IsZero() || !f.NextTry.After(f.Since) {
		t.Errorf("it is %+v", f)
	}
	if out := p.cairn("status"); !strings.Contains(out, "fails    the archive of shop, tried ") || !strings.Contains(out, "`cairn retry`") {
		t.Errorf("status says\n%s", out)
	}
	soon(t, "a retry is a try at once", func() bool {
		p.cairn("retry", "archive")
		return failing().Attempts >= 3
	})
	var d doctor.Diagnosis // not from diagnosed, which requires that no server runs
	if err := json.Unmarshal([]byte(p.run(p.command("doctor", "--json"), nil).stdout), &d); err != nil {
		t.Fatal(err)
	}
	wants(t, d, "followers", doctor.Problem, "the archive of shop fails since 20", "cairn retry")

	if err := os.Remove(p.dataDir() + "/archive"); err != nil {
		t.Fatal(err)
	}
	if out := p.cairn("retry"); !strings.Contains(out, "1 failing follower; the running server tries again now") {
		t.Errorf("retry says %s", out)
	}
	soon(t, "all is archived", func() bool { return strings.Contains(p.cairn("status"), "up to date") })
	p.wantAgreement()
	if out := p.cairn("retry", "--json"); out != "{\n  \"changes\": 0,\n  \"failing\": 0,\n  \"running\": true\n}\n" {
		t.Errorf("with nothing to do retry says %s", out)
	}
	p.fails("an unknown follower", p.run(p.command("retry", "archiv"), nil), 1, `no follower named "archiv"`, "cairn status")
	server.ends()
}

// archiveDies kills a server at a step of the archive. Then status must report the correct state,
// and the next server finishes the work exactly once.
func archiveDies(t *testing.T, program, point string) {
	p := newPosting(t)
	p.program = program
	server := p.control("serve", "--http", "127.0.0.1:0")
	upToDate := func() bool { return strings.Contains(p.cairn("status"), "up to date") }
	soon(t, "what came first is archived", upToDate)
	server.ctl(nil, "crash-point", fields{"at": point})
	p.post("one")
	server.died(point)

	out, err := p.git("log", "--format=%s", "main")
	if err != nil {
		t.Fatalf("git log: %v %s", err, out)
	}
	var f followers.Status
	for _, one := range p.followers().Followers {
		if one.Follower == "archive" && one.Lane == "shop" {
			f = one
		}
	}
	if committed := strings.Contains(out, "| one"); f.Running || !committed && f.Behind == 0 || point == "archive_advanced" && f.Behind > 0 {
		t.Errorf("committed: %v; status says %+v", committed, f)
	}
	if f.Behind > 0 && (f.Oldest.IsZero() || !strings.Contains(p.cairn("status"), "for the archive of shop, the first since 20")) {
		t.Errorf("status says %+v\n%s", f, p.cairn("status"))
	}
	server.start()
	soon(t, "all is archived", upToDate)
	p.wantAgreement()
	if out, err := p.git("log", "--format=%s", "main"); err != nil || strings.Count(out, "| one") != 1 {
		t.Errorf("it is committed %d times: %v\n%s", strings.Count(out, "| one"), err, out)
	}
}

// embedderDies checks the same as archiveDies at a step of a follower with one position.
func embedderDies(t *testing.T, program, point string) {
	h := newHome(t)
	h.program = program
	embedder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		_ = json.NewDecoder(r.Body).Decode(&asked)
		vectors := []any{}
		for i := range asked.Input {
			vectors = append(vectors, map[string]any{"index": i, "embedding": []float32{1, 2}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": vectors})
	}))
	t.Cleanup(embedder.Close)
	h.setting("[memory]\nembed_url = \"" + embedder.URL + "/v1/embeddings\"\n")
	h.keepEntries(1)
	server := h.control("serve", "--http", "127.0.0.1:0")
	status := func() (f followers.Status) {
		for _, f := range h.followers().Followers {
			if f.Follower == "memory-embed" {
				return f
			}
		}
		return f
	}
	soon(t, "the first is embedded", func() bool { return status().Running && status().Behind == 0 })
	server.ctl(nil, "crash-point", fields{"at": point})
	h.keepEntries(1)
	server.died(point)
	if f, behind := status(), point != "follower_advanced"; f.Running || behind != (f.Behind > 0) {
		t.Errorf("status says %+v", f)
	}
	server.start()
	soon(t, "all is embedded", func() bool { return status().Running && status().Behind == 0 })
}
