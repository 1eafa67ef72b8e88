package toolargs

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Kind is the type of an argument.
type Kind uint8

// The kinds of arguments. Most are derived from the Go type of the field.
const (
	String Kind = iota
	Integer
	Boolean
	Integers
	Project // a [Scope]; omitted, null and "*" each have a meaning
	Strings
	Object
	Nullable // a string; null means something else than omitted
	Names    // a string, a list of strings, or null, which is an empty list
	Anything // accepted, without effect
)

// Param is one argument, declared by a field of a tool's struct. Default, Minimum, Maximum
// and Enum only inform the client. The called part applies them, so that a limit out of
// range is clamped instead of rejected (contract observations §8).
type Param struct {
	Name        string
	Aliases     []string // other accepted names, in order of precedence
	Kind        Kind
	Required    bool
	Lean        bool   // listed in the lean tools although it is optional
	Brief       string // its description there
	Description string // for the model
	Enum        []string
	Default     any
	Minimum     *int
	Maximum     *int

	Unlisted bool // accepted, but not in the definition: for old clients, or without effect
	nonempty bool // "" is rejected
	raised   bool // a number below Minimum counts as Minimum
	Last     bool // the last part of a resource's address
	Style    Style
	Targets  []target // where the argument is stored
}

// Style is the convention by which a part of cairn reads its arguments.
type Style uint8

const (
	defaultStyle Style = iota // records and observations: JSON types, errors with code invalid_argument
	MailStyle                 // integers and booleans may be texts; errors have the codes of mail (mail §2)
	MemoryStyle               // integers may be texts; errors have the code of memories (memories §5.3)
)

// property is a Param as JSON Schema.
type property struct {
	Type        string         `json:"type"`
	Items       map[string]any `json:"items,omitempty"`
	Description string         `json:"description,omitempty"`
	Enum        []string       `json:"enum,omitempty"`
	Default     any            `json:"default,omitempty"`
	Minimum     *int           `json:"minimum,omitempty"`
	Maximum     *int           `json:"maximum,omitempty"`
}

func (p Param) property() property {
	out := property{
		Description: p.Description, Enum: p.Enum, Default: p.Default, Minimum: p.Minimum, Maximum: p.Maximum,
	}
	switch p.Kind {
	case Integer:
		out.Type = "integer"
	case Boolean:
		out.Type = "boolean"
	case Integers:
		out.Type, out.Items = "array", map[string]any{"type": "integer"}
	case Strings, Names:
		out.Type, out.Items = "array", map[string]any{"type": "string"}
		if p.Enum != nil {
			out.Items["enum"], out.Enum = p.Enum, nil
		}
	case Object:
		out.Type = "object"
	default: // a project and a nullable also accept null, but some clients reject a union of types
		out.Type = "string"
	}
	return out
}

// Schema returns the JSON Schema of params, in order.
func Schema(params []Param) (json.RawMessage, error) {
	properties := []byte{'{'}
	var required []string
	for _, p := range params {
		if p.Unlisted {
			continue
		}
		if len(properties) > 1 {
			properties = append(properties, ',')
		}
		schema, err := JSON(p.property())
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		properties = fmt.Appendf(properties, "%q:%s", p.Name, schema)
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return JSON(struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required,omitempty"`
	}{"object", append(properties, '}'), required})
}

// JSON returns v as JSON, without escaping <, > and &.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
