package gemini

import (
	"strings"
	"testing"
)

func TestGeminiPromptsLoseWhatHooksAdded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a<hook_context>x</hook_context> b <hook_context>y</hook_context>": "a b",
		"a <hook_context>never closed":                                     "a",
		"a </hook_context> b":                                              "a </hook_context> b",
		"<session_context>\nToday is":                                      "",
		"System: Please continue.":                                         "",
		"say <system-reminder>x</system-reminder>hello":                    "say\nhello",
		strings.Repeat("<hook_context></hook_context>", 1<<16):             "",
	} {
		if got := typed(in); got != want {
			t.Errorf("%.80q: %q, want %q", in, got, want)
		}
	}
}
