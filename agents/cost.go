package main

import (
	"os"
	"path/filepath"

	"cairn/agents/model"
)

// cost measures at the model's API what cairn adds to a request, with the setup of init and
// with each profile. It counts four bytes as a token.
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

// addedTo reports how much larger a request is than the same request without cairn.
func (e *examiner) addedTo(name string, r model.Request) {
	count, tools := r.ToolCost()
	added := r.Size() - e.plain.requests[0].Size()
	e.note(name, "%d tokens: %d tools %d, other text %d", added/4, count, tools/4, (added-tools)/4)
}
