package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// imported compares the rows stored by hooks with an import of the program's own transcripts.
// It also checks that an import adds nothing to the live store.
func (e *examiner) imported() {
	fresh := filepath.Join(filepath.Dir(e.home), "fresh")
	r := e.runWith(map[string]string{"CAIRN_HOME": fresh}, "import", "--json")
	live, err := e.rows("")
	read, err2 := e.rows(fresh)
	if err != nil || err2 != nil {
		e.line(checkImport, Fail, "exit %d: %s; %v; %v", r.Code, r.Output, err, err2)
		return
	}
	lost := e.lostTranscripts(live)
	live = slices.DeleteFunc(live, func(r row) bool { return slices.Contains(lost, r.Session) })
	different := differences(inTranscripts(live), inTranscripts(read), e.program.Unheard)
	e.check(checkImport, different == "", "%s (live: %s); sessions whose transcript the program has deleted: %d",
		different, showCounts(inTranscripts(live)), len(lost))
	r = e.run("import", "--json")
	var report struct {
		Added int            `json:"added"`
		Types map[string]int `json:"by_type"`
	}
	err = json.Unmarshal([]byte(r.Output), &report)
	e.check("import adds nothing to live", r.Code == 0 && err == nil && differences(nil, report.Types, e.program.Unheard) == "", "exit %d, added %d: %s", r.Code, report.Added, showCounts(report.Types))
}

// lostTranscripts returns the sessions of which only cairn has data, because the program has
// deleted their transcripts.
func (e *examiner) lostTranscripts(rows []row) []string {
	var sessions []string
	for _, r := range rows {
		sessions = appendNew(sessions, r.Session)
	}
	_ = filepath.WalkDir(e.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == ".cairn" {
				return filepath.SkipDir
			}
			return nil
		}
		if data, err := os.ReadFile(path); err == nil {
			sessions = slices.DeleteFunc(sessions, func(id string) bool { return bytes.Contains(data, []byte(id)) })
		}
		return nil
	})
	return sessions
}

// inTranscripts counts the rows by type, without the rows that only hooks report.
func inTranscripts(rows []row) map[string]int {
	counts := countTypes(rows)
	for _, name := range []string{"session_start", "session_end", "session_compact"} {
		delete(counts, name)
	}
	return counts
}

// removed uninstalls cairn. Every file must be as before init, unless the program has changed
// it since. Then it must no longer contain anything of cairn.
func (e *examiner) removed() {
	if err := e.restore(); err != nil {
		e.line(checkUninstall, Fail, "%v", err)
		return
	}
	d := e.run("doctor")
	found := problems(d.Output)
	if e.program.Trusted != nil { // doctor must report that the hooks are not trusted, and nothing else
		e.check("doctor", strings.Contains(found, ".trust") && strings.Count(found, "problem ") == 1, "exit %d: %s", d.Code, found)
	} else {
		e.check("doctor", d.Code == 0, "exit %d: %s", d.Code, found)
	}
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

// problems returns the lines of doctor that are not "ok".
func problems(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "ok") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " / ")
}

// processes checks that no process of any session is still running.
func (e *examiner) processes() {
	left := e.leftProcesses()
	e.check(checkLeft, len(left) == 0, "%s", strings.Join(left, " / "))
}
