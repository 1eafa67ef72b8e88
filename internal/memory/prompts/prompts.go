package prompts

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
	"cairn/internal/regular"
)

// Limits of an override (memories §5.1).
const (
	maxPrompt      = 2048 // code points
	maxPromptWords = 200
)

//go:embed *.md chat code
var builtIns embed.FS

// Templates contains the texts by name.
type Templates struct {
	Context string `json:"context_prompt"`
	Capture string `json:"entry_capture_prompt"`
	Summary string `json:"summary_prompt"`
}

// Prompts contains the instructions for an agent that keeps a memory.
type Prompts struct {
	Version   string    `json:"version"` // v1
	Rules     string    `json:"context_summary_rules"`
	Templates Templates `json:"templates"`
	Prompt    string    `json:"prompt"` // all texts in one
	Source    string    `json:"source"` // "override" if at least one text is overridden, else "default"
}

// Kinds returns the kinds of memories with prompts.
func Kinds() []string { return []string{"chat", "code"} }

// Of returns the texts for a kind of memory. A file <kind>/<template>.md in dir overrides a text;
// the template is a name of Templates or context_summary_rules. "" means no overrides. warnings names the overrides that cannot be used. CodeNotFound with
// details.allowed for another kind.
func Of(dir, kind string) (out Prompts, warnings []string, err error) {
	if kind != "chat" && kind != "code" {
		return out, nil, rules.Failure(fault.NotFound, memory.CodeNotFound, "use one of the kinds in details.allowed", "there are no prompts of this kind",
			"allowed", Kinds())
	}
	out.Version, out.Source = "v1", "default"
	for _, t := range []struct {
		name string
		text *string
	}{
		{"context_prompt", &out.Templates.Context}, {"entry_capture_prompt", &out.Templates.Capture},
		{"summary_prompt", &out.Templates.Summary}, {"context_summary_rules", &out.Rules},
	} {
		text, warning := override(dir, kind, t.name)
		if warning != "" {
			warnings = append(warnings, warning)
		}
		if text != "" {
			out.Source = "override"
		} else if text, err = builtIn(kind, t.name); err != nil {
			return out, warnings, err
		}
		*t.text = text
	}
	out.Prompt = strings.Join([]string{out.Templates.Context, out.Templates.Capture, out.Templates.Summary, out.Rules}, "\n\n")
	return out, warnings, nil
}

// builtIn returns the default text: that of the kind, or the one for all kinds.
func builtIn(kind, name string) (string, error) {
	text, err := builtIns.ReadFile(kind + "/" + name + ".md")
	if errors.Is(err, fs.ErrNotExist) {
		text, err = builtIns.ReadFile(name + ".md")
	}
	return strings.TrimSpace(string(text)), err
}

// override returns the user's text, "" for none.
func override(dir, kind, name string) (text, warning string) {
	if dir == "" {
		return "", ""
	}
	file := filepath.Join(dir, kind, name+".md")
	raw, err := regular.Read(file, regular.MaxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ""
	}
	text = strings.TrimSpace(string(raw))
	switch {
	case err != nil:
		return "", fmt.Sprintf("%s cannot be read; the default is used", file)
	case text == "" || !utf8.ValidString(text):
		return "", fmt.Sprintf("%s is empty or not UTF-8; the default is used", file)
	case utf8.RuneCountInString(text) > maxPrompt || len(strings.Fields(text)) > maxPromptWords:
		return "", fmt.Sprintf("%s has more than %d characters or %d words; the default is used", file, maxPrompt, maxPromptWords)
	}
	return text, ""
}
