package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// imported compares what hooks stored with what an import of the program's own transcripts
// stores, and checks that an import adds nothing to the live store.
func (e *examiner) imported() {
	fresh := filepath.Join(filepath.Dir(e.home), "fresh")
	r := e.runWith(map[string]string{"CAIRN_HOME": fresh}, "import", "--json")
	live, err := e.rows("")
	read, err2 := e.rows(fresh)
	if err != nil || err2 != nil {
		e.line(checkImport, Fail, "exit %d: %s; %v; %v", r.Code, r.Output, err, err2)
		return
	}
	same := countTypes(live)
	different := differences(same, countTypes(read))
	if different == "" {
		e.check(checkImport, true, "%s", showCounts(same))
	} else {
		e.check(checkImport, false, "%s (live: %s)", different, showCounts(same))
	}
	r = e.run("import", "--json")
	var report struct {
		Added int            `json:"added"`
		Types map[string]int `json:"by_type"`
	}
	err = json.Unmarshal([]byte(r.Output), &report)
	e.check("import adds nothing to live", r.Code == 0 && err == nil && report.Added == 0, "exit %d, added %d: %s", r.Code, report.Added, showCounts(report.Types))
}

// removed uninstalls cairn. Every file must be as it was, unless the program has changed it
// since init; then nothing of cairn may be left in it.
func (e *examiner) removed() {
	d := e.run("doctor")
	e.check("doctor", d.Code == 0, "exit %d: %s", d.Code, problems(d.Output))
	latest := e.settings()
	r := e.run("uninstall")
	after := e.settings()
	var wrong []string
	for _, path := range slices.Sorted(maps.Keys(e.wired)) {
		if e.wired[path] == e.before[path] {
			continue // init did not touch it
		}
		now, exists := after[path]
		was, existed := e.before[path]
		untouched := latest[path] == e.wired[path]
		switch {
		case untouched && (now != was || exists != existed):
			wrong = append(wrong, strings.TrimPrefix(path, e.home)+" differs from before init")
		case strings.Contains(now, e.cairn):
			wrong = append(wrong, strings.TrimPrefix(path, e.home)+" still names cairn")
		}
	}
	e.check(checkUninstall, r.Code == 0 && len(wrong) == 0, "exit %d: %s", r.Code, strings.Join(wrong, ", "))
}

// problems returns the lines of doctor that are no "ok".
func problems(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "ok") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " / ")
}

// processes checks that nothing of any session still runs.
func (e *examiner) processes() {
	left := e.leftProcesses()
	e.check("no process is left", len(left) == 0, "%s", strings.Join(left, " / "))
}
