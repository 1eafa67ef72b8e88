package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is one operation that a client can call. [NewTool] makes it.
type Tool struct {
	Name        string
	Title       string  // for people
	Description string  // for the model: when to use it, and what comes back
	Params      []Param // from the struct of its arguments
	ReadOnly    bool    // changes nothing; told to clients as an annotation

	// Result holds the type of the result, or the types if it is one of several. Empty:
	// the result is not described.
	Result []reflect.Type

	Lean  bool   // part of the small surface, see [Lean]
	Brief string // its Description there, "" for the same

	Errors ErrorFormat // how they are told

	Aliases []string // names by which it is called, too, and which no list shows
	Words   string   // by which find_tool finds it, besides those of its definition

	in     reflect.Type // the struct of its arguments
	common reflect.Type // that of the arguments which its part adds
	do     toolFunc

	strict   bool   // refuses arguments that it does not have; others ignore them and say so
	reach    *reach // in place of do: where the tool that is called is found
	levelled bool   // for every bearer, whose level it judges itself; others are the owner's alone
}

// NewTool completes t with its arguments, the fields of the struct type In (see
// paramsOf), and with do, which does the work. In holds checked arguments of the declared
// kinds, with every required one present. The result is described by Out, unless t does
// that. It is sent as JSON text and as structured content, which is an object: the result
// itself, or {"result": …} around a list or a text (amendments §B.2). A [Text] is sent
// bare. ctx ends when the client cancels the call or goes away.
func NewTool[In, Out any](t Tool, do func(ctx context.Context, c Call, in In) (Out, error)) Tool {
	return t.with(reflect.TypeFor[In](), reflect.TypeFor[Out](), func(ctx context.Context, c Call, in any) (any, error) {
		return do(ctx, c, *in.(*In))
	})
}

// toolFunc is the function of a tool or a resource; in is a pointer to its arguments. Functions
// with type parameters do no more than make one: each of their instances has the tags of
// its arguments in its name, in the program's file.
type toolFunc func(ctx context.Context, c Call, in any) (any, error)

// with is [NewTool] without type parameters.
func (t Tool) with(in, out reflect.Type, do toolFunc) Tool {
	if t.common == nil {
		t.common = reflect.TypeFor[struct{}]()
	}
	t.in, t.Params, t.do = in, paramsOf(in, t.common), do
	if t.Result == nil && out.Kind() != reflect.Interface && out != reflect.TypeFor[Text]() {
		t.Result = []reflect.Type{out}
	}
	return t
}

// Text is a result that is not JSON but text for the model, sent as it is.
type Text string

// TextAndValue is a result whose text for the model is not its JSON.
type TextAndValue struct {
	Text  string
	Value any // an object, sent as structured content

	// Alone: over MCP the structured content is {"result": Text}, since some hosts show
	// their model that instead of the text. Value is what the JSON API sends.
	Alone bool
}

// Empty is a list without elements. Its text is the JSON list; Hint, a second text, says
// what was tried and what to try.
type Empty struct{ Hint string }

// ErrorFormat says how the errors of a tool are told.
type ErrorFormat uint8

// The ways of telling errors.
const (
	ErrorText     ErrorFormat = iota // the message, and as structured content the product's envelope (observations §8)
	ErrorEnvelope                    // the envelope in JSON as text too, with codes in upper case (records §2, mail §2.1)
	ErrorStatus                      // a text that begins with the code; the envelope has one more key, status (memories §9)
)

// Kind is the type of an argument.
type Kind uint8

// The kinds of arguments. The Go type of its field tells most of them.
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
	Anything // taken and of no effect
)

// Param is one argument, as a field of a tool's struct declares it. Default, Minimum,
// Maximum and Enum inform the client; the part that is called applies them, so that a
// limit out of range is clamped and not refused (contract observations §8).
type Param struct {
	Name        string
	Aliases     []string // other names by which it is taken, the first that is there
	Kind        Kind
	Required    bool
	Lean        bool   // listed in the small surface although it is optional
	Brief       string // its Description there
	Description string // for the model
	Enum        []string
	Default     any
	Minimum     *int
	Maximum     *int

	unlisted bool // taken, but no part of the definition: old clients send it, or it changes nothing
	nonempty bool // "" is refused
	raised   bool // a number below Minimum counts as that
	last     bool // the last part of a resource's address
	style    argStyle
	targets  []target // where the argument is stored
}

// argStyle is how a part of cairn wants its arguments read.
type argStyle uint8

const (
	defaultStyle argStyle = iota // records and observations: JSON types, errors with code invalid_argument
	mailStyle                    // integers and booleans may come as text, and errors have the codes of mail (mail §2)
	memoryStyle                  // integers may come as text, and errors have the code of memories (memories §5.3)
)

// property is a Param in JSON Schema.
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
	default: // null for a project and a nullable too, but some clients refuse a union of types
		out.Type = "string"
	}
	return out
}

// Schema is the JSON Schema of t's arguments, in their order.
func (t Tool) Schema() (json.RawMessage, error) { return inputSchema(t.Params) }

// inputSchema is the JSON Schema of params, in their order.
func inputSchema(params []Param) (json.RawMessage, error) {
	properties := []byte{'{'}
	var required []string
	for _, p := range params {
		if p.unlisted {
			continue
		}
		if len(properties) > 1 {
			properties = append(properties, ',')
		}
		schema, err := encode(p.property())
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		properties = fmt.Appendf(properties, "%q:%s", p.Name, schema)
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return encode(struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required,omitempty"`
	}{"object", append(properties, '}'), required})
}

// definition is what tools/list says about t.
func (t Tool) definition() (*sdk.Tool, error) {
	schema, err := inputSchema(t.Params)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	d := &sdk.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: schema}
	if len(t.Result) > 0 {
		if d.OutputSchema, err = outputSchema(t.Result); err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
	}
	if t.ReadOnly {
		d.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: true}
	}
	return d, nil
}

// Tokens estimates what the definitions of tools cost a model's context where a
// client sends them as they are: a quarter of their bytes in tools/list, rounded up
// (design §7). Schemas of results do not count: no client shows them to its model. What
// a certain client sends is told by [Host.Cost].
func Tokens(tools []Tool) (int, error) {
	bytes := 0
	for _, t := range tools {
		t.Result = nil
		d, err := t.definition()
		if err != nil {
			return 0, err
		}
		data, err := encode(d)
		if err != nil {
			return 0, err
		}
		bytes += len(data)
	}
	return (bytes + 3) / 4, nil
}

// Lean is the small surface of tools: those that an agent needs every day, told of
// with the arguments that matter most. They take all the others too.
func Lean(tools []Tool) []Tool {
	var lean []Tool
	for _, t := range tools {
		if !t.Lean {
			continue
		}
		t.Title, t.Description, t.Result, t.Params = "", cmp.Or(t.Brief, t.Description), nil, slices.Clone(t.Params)
		for i := range t.Params {
			p := &t.Params[i]
			p.unlisted = !p.Required && !p.Lean
			p.Description, p.Default, p.Minimum, p.Maximum = p.Brief, nil, nil, nil
		}
		lean = append(lean, t)
	}
	return lean
}

// encode is v in JSON, with <, > and & left readable.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
