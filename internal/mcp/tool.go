package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"cairn/internal/mcp/toolargs"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is one operation that a client can call. [NewTool] creates it.
type Tool struct {
	Name        string
	Title       string           // human-readable
	Description string           // for the model: when to use it, and what it returns
	Params      []toolargs.Param // derived from the struct of its arguments
	ReadOnly    bool             // changes nothing; sent to clients as an annotation

	// Result is the type of the result, or its possible types. If it is empty, the result
	// has no schema.
	Result []reflect.Type

	Lean  bool   // one of the lean tools, see [Lean]
	Brief string // its description as a lean tool, "" for the same

	Errors ErrorFormat // the format of its errors

	Aliases []string // additional names that are not listed
	Words   string   // additional words for find_tool

	in     reflect.Type // the struct type of its arguments
	common reflect.Type // the struct type of its part's common arguments
	do     toolFunc

	strict      bool   // rejects unknown arguments; other tools ignore and report them
	reach       *reach // instead of do: finds the tool to call
	checksLevel bool   // accepts every bearer and checks its level; other tools are only for the owner
}

// NewTool completes t with its arguments, the fields of the struct type In (see
// [toolargs.ParamsOf]), and with its function do. In contains checked arguments of the declared
// kinds, including all required ones. Out describes the result, unless t has a Result. The
// result is sent as JSON text and as structured content, which is an object: the result
// itself, or {"result": …} around a list or a text (amendments §B.2). A [Text] is sent as
// plain text. ctx ends when the client cancels the call or disconnects.
func NewTool[In, Out any](t Tool, do func(ctx context.Context, c Call, in In) (Out, error)) Tool {
	return t.with(reflect.TypeFor[In](), reflect.TypeFor[Out](), func(ctx context.Context, c Call, in any) (any, error) {
		return do(ctx, c, *in.(*In))
	})
}

// toolFunc is the function of a tool or a resource; in is a pointer to its arguments.
// Generic functions only create one and do nothing else: the name of each of their
// instances contains the tags of its arguments, which makes the program's file larger.
type toolFunc func(ctx context.Context, c Call, in any) (any, error)

// with is [NewTool] without type parameters.
func (t Tool) with(in, out reflect.Type, do toolFunc) Tool {
	if t.common == nil {
		t.common = reflect.TypeFor[struct{}]()
	}
	t.in, t.Params, t.do = in, toolargs.ParamsOf(in, t.common), do
	if t.Result == nil && out.Kind() != reflect.Interface && out != reflect.TypeFor[Text]() {
		t.Result = []reflect.Type{out}
	}
	return t
}

// Text is a result that is plain text for the model, not JSON. It is sent unchanged.
type Text string

// TextAndValue is a result whose text for the model is not its JSON.
type TextAndValue struct {
	Text  string
	Value any // an object, sent as structured content

	// Alone makes the structured content over MCP {"result": Text}, because some hosts show
	// it to their model instead of the text. The JSON API sends Value.
	Alone bool
}

// Empty is an empty list. Its text is the JSON list. Hint is a second text that describes what
// was tried and what to try next.
type Empty struct{ Hint string }

// ErrorFormat is the format of a tool's errors.
type ErrorFormat uint8

// The formats of errors.
const (
	ErrorText     ErrorFormat = iota // the message, and as structured content the product's envelope (observations §8)
	ErrorEnvelope                    // the envelope in JSON as text too, with codes in upper case (records §2, mail §2.1)
	ErrorStatus                      // a text that begins with the code; the envelope has one more key, status (memories §9)
)

// Schema returns the JSON Schema of t's arguments, in order.
func (t Tool) Schema() (json.RawMessage, error) { return toolargs.Schema(t.Params) }

// definition returns the definition of t for tools/list.
func (t Tool) definition() (*sdk.Tool, error) {
	schema, err := toolargs.Schema(t.Params)
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

// Tokens estimates the cost of tool definitions in a model's context, for a client that
// sends them unchanged: a quarter of their bytes in tools/list, rounded up (design §7).
// Result schemas do not count, because no client shows them to its model. For the cost in
// a certain client, see [Host.Cost].
func Tokens(tools []Tool) (int, error) {
	bytes := 0
	for _, t := range tools {
		t.Result = nil
		d, err := t.definition()
		if err != nil {
			return 0, err
		}
		data, err := toolargs.JSON(d)
		if err != nil {
			return 0, err
		}
		bytes += len(data)
	}
	return (bytes + 3) / 4, nil
}

// Lean returns the lean tools: the tools that an agent needs every day, with their most
// important arguments. They also accept all others.
func Lean(tools []Tool) []Tool {
	var lean []Tool
	for _, t := range tools {
		if !t.Lean {
			continue
		}
		t.Title, t.Description, t.Result, t.Params = "", cmp.Or(t.Brief, t.Description), nil, slices.Clone(t.Params)
		for i := range t.Params {
			p := &t.Params[i]
			p.Unlisted = !p.Required && !p.Lean
			p.Description, p.Default, p.Minimum, p.Maximum = p.Brief, nil, nil, nil
		}
		lean = append(lean, t)
	}
	return lean
}
