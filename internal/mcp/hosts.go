package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	"cairn/internal/mcp/toolargs"
)

// Host describes how an agent program presents the tools of a server named cairn to its
// model, as observed in its requests to the model's API. [Host.Cost] computes the cost.
type Host struct {
	Name    string
	Version string // the version whose requests were observed; "" if none were

	// Deferred is set if definitions are loaded when the model asks for them. Then each
	// request contains only Tool of a tool.
	Deferred bool

	// Tool is the text for each tool in the JSON of a request: %[1]s is the name, %[2]s the
	// description and %[3]s the schema, both in JSON, and %[4]s the description inside a
	// JSON string.
	Tool  string
	Drops []string // keywords that are removed from schemas
	Extra int      // bytes that are added to each schema

	Longest      int          // characters of a description, 0 for all
	Instructions Instructions // which instructions of the server are sent
	Frame        int          // bytes around everything, including the tools that the program adds for resources
}

// Instructions selects the parts of a server's instructions that are sent to a model.
type Instructions uint8

// The possible parts of the instructions.
const (
	NoInstructions Instructions = iota
	FirstLine
	AllInstructions
)

const (
	functionForm = `,{"type":"function","function":{"name":"%s","description":%%[2]s,"parameters":%%[3]s}}`
	codexForm    = `,{"type":"function","name":"%[1]s","description":%[2]s,"strict":false,"parameters":%[3]s}`
	geminiForm   = `,{"name":"mcp_cairn_%[1]s","description":%[2]s,"parametersJsonSchema":%[3]s}`
)

// Hosts returns the known programs. The last one represents all others, which send what
// the server lists.
func Hosts() []Host {
	return []Host{
		{Name: "Claude Code", Version: "2.1.330", Deferred: true, Tool: `mcp__cairn__%[1]s\n`, Instructions: AllInstructions, Frame: 207},
		{Name: "Codex, code mode", Version: "0.169.0", Deferred: true, Instructions: FirstLine, Frame: 90},
		{Name: "Codex, plain tools", Version: "0.169.0", Tool: codexForm, Drops: []string{"default", "minimum", "maximum"}, Instructions: AllInstructions, Frame: 1956},
		{Name: "Gemini CLI", Version: "0.61.0", Tool: geminiForm, Extra: 260, Instructions: AllInstructions, Frame: 1291},
		{Name: "Qwen Code", Version: "0.15.10", Deferred: true, Tool: `- \"mcp__cairn__%[1]s\": %[4]s\n`, Longest: 160},
		{Name: "OpenCode", Version: "1.18.33", Tool: fmt.Sprintf(functionForm, "cairn_%[1]s"), Extra: 29, Instructions: AllInstructions, Frame: 1565},
		{Name: "Copilot CLI", Version: "1.0.102", Tool: fmt.Sprintf(functionForm, "cairn-%[1]s")},
		{Name: "Cursor, Cline, Windsurf and others", Tool: fmt.Sprintf(functionForm, "mcp_cairn_%[1]s"), Instructions: AllInstructions},
	}
}

// Cost estimates the tokens that tools and a server's instructions add to each request
// of the host: a quarter of their bytes there, rounded up.
func (h Host) Cost(tools []Tool, instructions string) (int, error) {
	bytes := h.Frame
	for _, t := range tools {
		n, err := h.toolBytes(t)
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	switch h.Instructions {
	case FirstLine:
		instructions, _, _ = strings.Cut(instructions, "\n")
	case NoInstructions:
		instructions = ""
	}
	text, err := toolargs.JSON(instructions)
	return (bytes + len(text) - len(`""`) + 3) / 4, err
}

// toolBytes returns the number of bytes of a tool in a request.
func (h Host) toolBytes(t Tool) (int, error) {
	if h.Tool == "" {
		return 0, nil
	}
	schema, err := t.Schema()
	if err != nil {
		return 0, err
	}
	if len(h.Drops) > 0 {
		var read any
		if err := json.Unmarshal(schema, &read); err != nil {
			return 0, err
		}
		h.drop(read)
		if schema, err = toolargs.JSON(read); err != nil {
			return 0, err
		}
	}
	about := []rune(t.Description)
	if h.Longest > 0 && len(about) > h.Longest {
		about = append(about[:h.Longest-1], '…')
	}
	description, err := toolargs.JSON(string(about))
	if err != nil {
		return 0, err
	}
	inside, err := toolargs.JSON(string(description))
	if err != nil {
		return 0, err
	}
	extra := h.Extra
	if !strings.Contains(h.Tool, "%[3]s") {
		extra = 0
	}
	arguments := []any{t.Name, description, schema, inside[1 : len(inside)-1]}
	return len(fmt.Sprintf(h.Tool, arguments...)) + extra, nil
}

// drop removes keywords from a schema. It keeps properties with the name of a keyword,
// because their values are schemas.
func (h Host) drop(schema any) {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			h.drop(item)
		}
	case map[string]any:
		for _, keyword := range h.Drops {
			if _, isSchema := s[keyword].(map[string]any); !isSchema {
				delete(s, keyword)
			}
		}
		for _, value := range s {
			h.drop(value)
		}
	}
}
