package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"cairn/internal/doctor"

	"cairn/internal/followers"
)

// followers is what cairn status says of the followers.
func (h *home) followers() (out followers.Account) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.cairn("status", "--json")), &out); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// TestAUserSeesAFollowerThatAlwaysFails in status, in doctor and in the metrics; once the
// reason is gone, retry ends it at once.
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
	var d doctor.Diagnosis // not by diagnosed, which wants no server at work
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
