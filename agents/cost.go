package main

import (
	"os"
	"path/filepath"

	"cairn/agents/model"
)

// cost measures what cairn adds to a request, at the model's API: as init wires it, and
// with each profile. A token is taken as four bytes.
func (e *examiner) cost() {
	chosen := filepath.Join(filepath.Dir(e.home), "profile") // see hookproxy
	for _, profile := range []string{"", "full", "lean"} {
		name := "tokens per request, as wired"
		if profile != "" {
			name = "tokens per request, " + profile
			if err := writeFile(chosen, profile); err != nil {
				e.line(name, Fail, "%v", err)
				return
			}
		}
		s := e.session("Say hello.", mode{}, model.Say("Hello there."))
		if len(s.requests) == 0 {
			e.line(name, Fail, "no request: exit %d, %s", s.Code, ending(s.Output))
			continue
		}
		e.addedTo(name, s.requests[0])
	}
	if err := os.Remove(chosen); err != nil {
		e.line("tokens per request", Fail, "%v", err)
	}
}

// addedTo reports how much larger a request is than the same one without cairn.
func (e *examiner) addedTo(name string, r model.Request) {
	count, tools := r.ToolCost()
	added := r.Size() - e.plain.requests[0].Size()
	e.note(name, "%d tokens: %d tools %d, other text %d", added/4, count, tools/4, (added-tools)/4)
}
