package codex

import "testing"

func TestCodexPromptsHoldOnlyWhatWasTyped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"glaze it":                       "glaze it",
		"  keep\tthe space ":             "  keep\tthe space ",
		"why is <skill> here?":           "why is <skill> here?",
		"<b>bold</b> claim":              "<b>bold</b> claim",
		"## My request for Codex:\nfire": "fire",
		"# Context from my IDE setup:\n## Active file: a.go\n\n## My request for Codex:\nfire\n":                       "fire",
		"# Context from my IDE setup: is it sent?":                                                                     "# Context from my IDE setup: is it sent?",
		"<environment_context>\n<cwd>/k</cwd>\n</environment_context>":                                                 "",
		"<environment_context>never closed":                                                                            "",
		"<user_instructions>\nx\n</user_instructions>\n\nfire":                                                         "fire",
		"# AGENTS.md instructions for /k\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>":                                        "",
		"# AGENTS.md instructions for /k\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\n<skill>\n<name>y</name>\n</skill>fire": "fire",
		"<codex_internal_context kind=\"goal\">x</codex_internal_context>":                                             "",
		"<turn_aborted>\nstopped\n</turn_aborted>":                                                                     "",
		"<permissions instructions>x</permissions instructions>fire":                                                   "fire",
		"fire<system-reminder>x</system-reminder>":                                                                     "fire",
		"": "",
	} {
		if got := typed(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
