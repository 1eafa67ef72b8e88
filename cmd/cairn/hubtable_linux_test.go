package main

import (
	"strings"
	"testing"
)

// TestAHubWhoseDiskIsFullIsReported fills the hub's disk. Writes wait, and the commands report
// this, until there is space again.
func TestAHubWhoseDiskIsFullIsReported(t *testing.T) {
	t.Parallel()
	h := newClone(t)
	s := h.siteOn("new", func(hub *home) { hub.tmpfs("4m") })
	h.join(s, s.token)
	h.writes("", "one")
	h.cairn("replication", "drain")
	free := s.home.fill(0)
	w := h.listenUntil()
	h.writes(strings.Repeat("long ", 900), "two")
	h.soon("the stop", func() bool {
		return strings.Contains(h.run(h.command("memory", "await", "--timeout-ms", "0", "--json"), nil).stderr, "disk_full")
	})
	h.reports("disk_full, 2 pending, 0 refused", "problem ", `"state":"disk_full"`)
	h.reports("do: free disk space at the hub", "problem ", "the hub's disk is full")
	free()
	h.soon("the end of the stop", func() bool { return h.run(h.command("memory", "await"), nil).code == 0 })
	h.reports("running, 0 pending", "ok ", "consistent")
	if got := s.entries(); got != "one two" {
		t.Errorf("the hub has %q", got)
	}
	if said := s.hub.stderr.String(); !strings.Contains(said, "disk is full") {
		t.Errorf("the hub has logged %s", said)
	}
	w.stop()
}
