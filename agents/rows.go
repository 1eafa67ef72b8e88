package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// row is one stored observation.
type row struct {
	Type    string
	Content string
	Harness string
	File    string
	Event   string
	Session string
}

// rows returns the rows of a store. home is the folder of another store, or "" for the live
// store.
func (s *stand) rows(home string) ([]row, error) {
	env := map[string]string{}
	if home != "" {
		env["CAIRN_HOME"] = home
	}
	r := s.runWith(env, "export", "--all")
	if r.Code != 0 {
		return nil, fmt.Errorf("export: exit %d: %s", r.Code, shorten(r.Output))
	}
	harness := map[string]string{}
	var list []row
	for line := range strings.Lines(r.Output) {
		var item struct {
			Kind, Harness, Session, Content string
			ID                              any    // text for a session, number for an observation
			Type                            string `json:"obs_type"`
			File                            string `json:"file_path"`
			Event                           string `json:"source_event"`
		}
		if json.Unmarshal([]byte(line), &item) != nil {
			continue // a header line
		}
		switch item.Kind {
		case "session":
			harness[fmt.Sprint(item.ID)] = item.Harness
		case "observation":
			list = append(list, row{item.Type, item.Content, harness[item.Session], item.File, item.Event, item.Session})
		}
	}
	return list, nil
}

// countTypes counts rows by type.
func countTypes(rows []row) map[string]int {
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.Type]++
	}
	return counts
}

// showCounts formats counts in the order of their names.
func showCounts(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// differences formats where an import has fewer rows than hooks, or more than unheard allows.
// It returns "" if there is no difference.
func differences(live, imported, unheard map[string]int) string {
	names := map[string]bool{}
	for name := range live {
		names[name] = true
	}
	for name := range imported {
		names[name] = true
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if more := imported[name] - live[name]; more < 0 || more > unheard[name] {
			parts = append(parts, fmt.Sprintf("%s: live %d, imported %d", name, live[name], imported[name]))
		}
	}
	return strings.Join(parts, "; ")
}
