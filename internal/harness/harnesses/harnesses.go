package harnesses

import (
	"slices"
	"sync"

	"cairn/internal/harness"
	"cairn/internal/harness/claude"
	"cairn/internal/harness/cline"
	"cairn/internal/harness/codex"
	"cairn/internal/harness/copilot"
	"cairn/internal/harness/cursor"
	"cairn/internal/harness/gemini"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/harness/opencode"
	"cairn/internal/harness/windsurf"
	"cairn/internal/observation"
)

// All returns the agent programs that cairn supports, in the order in which they are listed.
// If a transcript matches several of them, the first one wins. If a payload matches several, the
// last one wins. The table is created once and shared. Callers must not change it.
func All() []harness.Harness { return all() }

var all = sync.OnceValue(func() []harness.Harness {
	return []harness.Harness{
		except(claude.Harness(), codex.Harness(), gemini.Qwen()), // their lines look like Claude Code's
		codex.Harness(), gemini.Harness(), cursor.Harness(), opencode.Harness(), copilot.Harness(), gemini.Qwen(), cline.Harness(),
		windsurf.Harness(),
	}
})

// except returns a harness that recognises only lines that the others do not write.
func except(h harness.Harness, others ...harness.Harness) harness.Harness {
	writes := h.Writes
	h.Writes = func(line lazyjson.Value) bool {
		return writes(line) && !slices.ContainsFunc(others, func(o harness.Harness) bool { return o.Writes(line) })
	}
	return h
}

// Of returns the harness with a name or an alias, and false if cairn does not know it.
func Of(name string) (harness.Harness, bool) {
	all := All()
	i := slices.IndexFunc(all, func(h harness.Harness) bool { return h.Name == name || slices.Contains(h.Aliases, name) })
	if i < 0 {
		return harness.Harness{}, false
	}
	return all[i], true
}

// Names returns the names of all harnesses.
func Names() (names []string) {
	for _, h := range All() {
		names = append(names, h.Name)
	}
	return names
}

// UnnamedHarnesses returns the names of the harnesses whose hooks and transcripts have no ids in
// common, for observation.Config.
func UnnamedHarnesses() (names []string) {
	for _, h := range All() {
		if h.Unnamed {
			names = append(names, h.Name)
		}
	}
	return names
}

// senderOf returns the harness of an event. An event without a known harness is treated like
// Claude Code's.
func senderOf(e observation.Event) harness.Harness {
	if h, ok := Of(e.Harness); ok {
		return h
	}
	return All()[0]
}
