package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Health shows the findings of doctor and everything that the user maintains, each with the
// command for it.
func TestHealthShowsFindingsCopiesAndFollowers(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worked()
	w := h.listen()
	v := w.visitor()
	v.page(v.get("/status"), http.StatusOK, "Doctor checks the store", "There is no backup", "There is no archive yet", "not joined", "Run doctor")
	h.cairn("backup")
	h.cairn("records", "create", "--session", "s9", "--type", "question", "--title", "Who pays?", "--summary", "x", "--body", "y")
	if r := v.submit("/status", url.Values{"form_token": {"wrong"}}); r.status != http.StatusForbidden {
		t.Errorf("a form of nobody's ran doctor: %d", r.status)
	}
	if r := v.submit("/status", url.Values{"form_token": {tokenOf(v.get("/status"))}}); r.status != http.StatusSeeOther || r.header.Get("Location") != "/status" {
		t.Fatalf("running doctor: %d %s", r.status, r.body)
	}
	v.page(v.get("/status"), http.StatusOK, "Run doctor again", ".tar.gz</code>")
	var page struct {
		Doctor struct {
			Checks   []struct{ Name, State string }
			Findings int
		}
		Backups  []struct{ File string }
		Archives []struct{ Project string }
	}
	v.json("/status", &page)
	if len(page.Doctor.Checks) < 10 || len(page.Backups) != 1 || len(page.Archives) != 1 {
		t.Errorf("health: %+v", page)
	}
	found := 0
	for _, c := range page.Doctor.Checks {
		if c.State == "problem" || c.State == "warning" {
			found++
		}
	}
	if r := v.get("/"); found != page.Doctor.Findings || strings.Count(r.body, "How to fix") != found {
		t.Errorf("Today names %d findings of %d", strings.Count(r.body, "How to fix"), found)
	}
}
