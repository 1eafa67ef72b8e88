package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"
)

// surfaceOf lists what a server with arguments offers. Its instructions name no
// tool that it lacks.
func (h *home) surfaceOf(args ...string) (names []string, bytes int) {
	h.t.Helper()
	c := h.dialTo(h.command(append([]string{"serve"}, args...)...), "", nil)
	defer c.leave()
	if c.InitializeResult().Instructions == "" {
		h.t.Errorf("%v: no instructions", args)
	}
	defer func() {
		for _, word := range regexp.MustCompile(`[a-z]+(_[a-z]+)+`).FindAllString(c.InitializeResult().Instructions, -1) {
			if word != "project_id" && word != "memory_id" && word != "session_id" && word != "project_key" && !slices.Contains(names, word) {
				h.t.Errorf("%v: the instructions name %s", args, word)
			}
		}
	}()
	listed, err := c.ListTools(h.t.Context(), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
		data, err := json.Marshal(tool)
		if err != nil {
			h.t.Fatal(err)
		}
		bytes += len(data)
	}
	return names, bytes
}

func TestServersOfferWhatTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	all, whole := h.surfaceOf()
	if len(all) != 1+len(observationTools())+19+31+16 || (whole+3)/4 > 6500 || !slices.Contains(all, "recall") {
		t.Errorf("%d tools, %d bytes", len(all), whole)
	}
	records, bytes := h.surfaceOf("--toolsets", "records")
	if len(records) != 1+19 || (bytes+3)/4 > 2250 || !slices.Contains(records, "recall") || slices.Contains(records, "search") {
		t.Errorf("records: %v, %d bytes", records, bytes)
	}
	if observations, _ := h.surfaceOf("--toolsets", "observations"); len(observations) != 1+6 {
		t.Errorf("observations: %v", observations)
	}
	if memories, bytes := h.surfaceOf("--toolsets", "memories"); len(memories) != 1+16 || (bytes+3)/4 > 1350 {
		t.Errorf("memories: %v, %d bytes", memories, bytes)
	}
	if both, _ := h.surfaceOf("--toolsets", "records,mail,observations,memories"); len(both) != len(all) {
		t.Errorf("all by name: %v", both)
	}
	for profile, has := range map[string][]string{
		"core":      {"search", "create_record", "fetch_inbox", "macro_start_session", "file_reservation_paths"},
		"messaging": {"search", "create_record", "fetch_inbox", "request_contact"},
		"minimal":   {"search", "health_check", "create_record", "fetch_inbox", "register_agent"},
	} {
		some, bytes := h.surfaceOf("--profile", profile)
		if bytes >= whole || slices.ContainsFunc(has, func(name string) bool { return !slices.Contains(some, name) }) {
			t.Errorf("%s: %v", profile, some)
		}
	}
	if mail, bytes := h.surfaceOf("--toolsets", "mail"); len(mail) != 1+31 || (bytes+3)/4 > 2300 || slices.Contains(mail, "search") {
		t.Errorf("mail: %v, %d bytes", mail, bytes)
	}
	if lean, bytes := h.surfaceOf("--profile", "lean"); (bytes+3)/4 > 700 || !slices.Contains(lean, "recall") || !slices.Contains(lean, "create_record") || !slices.Contains(lean, "search") ||
		!slices.Contains(lean, "add_entry") || !slices.Contains(lean, "search_memories") {
		t.Errorf("lean: %v, %d bytes", lean, bytes)
	}
}

// TestLeanToolsTakeEveryArgument gives one that the lean definition leaves out.
func TestLeanToolsTakeEveryArgument(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	c := h.dialTo(h.command("serve", "--profile", "lean"), "", nil)
	h.t.Cleanup(c.leave)
	if r := c.created(fields{"title": "t", "state": "LATER"}); r.State != "LATER" {
		t.Errorf("created: %+v", r)
	}
}
