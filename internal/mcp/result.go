package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// success presents the value that a tool returned. Its structured content is an object
// (amendments §B.2).
func success(v any) (*sdk.CallToolResult, error) {
	switch said := v.(type) {
	case Text:
		structured, err := wrapped(string(said))
		return &sdk.CallToolResult{Content: textContent(string(said)), StructuredContent: structured}, err
	case Empty:
		structured, err := encode(emptyList{[]any{}, said.Hint})
		return &sdk.CallToolResult{Content: textContent("[]", said.Hint), StructuredContent: json.RawMessage(structured)}, err
	case TextAndValue:
		if said.Alone {
			return success(Text(said.Text))
		}
		data, err := resultJSON(said.Value)
		return &sdk.CallToolResult{Content: textContent(said.Text), StructuredContent: json.RawMessage(data)}, err
	}
	data, err := resultJSON(v)
	if err != nil {
		return nil, err
	}
	structured := json.RawMessage(data)
	if data[0] != '{' {
		structured, err = wrapped(structured)
	}
	return &sdk.CallToolResult{Content: textContent(string(data)), StructuredContent: structured}, err
}

// emptyList is the structured content of an [Empty].
type emptyList struct {
	Result []any  `json:"result"`
	Hint   string `json:"hint,omitempty"`
}

// wrapped puts a result that is not an object into one.
func wrapped(v any) (json.RawMessage, error) { return encode(map[string]any{"result": v}) }

// resultJSON is what a tool returned in JSON; a list that is nil is an empty one.
func resultJSON(v any) ([]byte, error) {
	data, err := encode(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	if string(data) == "null" && v != nil && reflect.TypeOf(v).Kind() == reflect.Slice {
		data = []byte("[]")
	}
	return data, nil
}

// presenter presents the error of a call.
type presenter func(ctx context.Context, log *slog.Logger, tool string, err error) (*sdk.CallToolResult, error)

func (e ErrorFormat) presenter() presenter {
	switch e {
	case ErrorEnvelope:
		return enveloped
	case ErrorStatus:
		return statused
	}
	return failure
}

// failure presents an error: what the model can act on as a tool result, with
// the product's envelope as structured content, anything else as a JSON-RPC
// error. An error that nobody classified is logged and its text withheld, since
// it may name a path.
func failure(ctx context.Context, log *slog.Logger, tool string, err error) (*sdk.CallToolResult, error) {
	f, known := errors.AsType[*fault.Error](err)
	switch {
	case !known && ctx.Err() != nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call was cancelled"}
	case !known:
		log.ErrorContext(ctx, "a tool failed", "tool", tool, "error", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
	case f.Kind == fault.Internal || f.Kind == fault.Unavailable:
		log.ErrorContext(ctx, "a tool failed", "tool", tool, "code", f.Code, "error", f.Message)
		data, err := encode(map[string]string{"code": f.Code, "recovery_hint": f.Hint})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.Message, Data: data}
	}
	envelope, err := encode(fault.EnvelopeOf(f))
	if err != nil {
		return nil, fmt.Errorf("encoding the error: %w", err)
	}
	texts := []string{f.Message}
	if f.Hint != "" {
		texts = append(texts, f.Hint)
	}
	return &sdk.CallToolResult{
		IsError: true, Content: textContent(texts...), StructuredContent: json.RawMessage(envelope),
	}, nil
}

// enveloped is failure with the envelope as the text: every classified error is
// a result, also one of the store.
func enveloped(ctx context.Context, log *slog.Logger, tool string, err error) (*sdk.CallToolResult, error) {
	f, known := errors.AsType[*fault.Error](err)
	if !known {
		return failure(ctx, log, tool, err)
	}
	if f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		log.ErrorContext(ctx, "a tool failed", "tool", tool, "code", f.Code, "error", f.Message)
	}
	data, err := encode(upperCased(f))
	if err != nil {
		return nil, fmt.Errorf("encoding the error: %w", err)
	}
	return &sdk.CallToolResult{IsError: true, Content: textContent(string(data)), StructuredContent: json.RawMessage(data)}, nil
}

// statused presents every error as a result: a line that begins with the code, and the
// envelope with the status that the error has over HTTP (memories §9).
func statused(ctx context.Context, log *slog.Logger, tool string, err error) (*sdk.CallToolResult, error) {
	f, known := errors.AsType[*fault.Error](err)
	if !known {
		return failure(ctx, log, tool, err)
	}
	if f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		log.ErrorContext(ctx, "a tool failed", "tool", tool, "code", f.Code, "error", f.Message)
	}
	data, err := encode(struct {
		fault.Envelope
		Status int `json:"status"`
	}{fault.EnvelopeOf(f), memory.Status(f)})
	if err != nil {
		return nil, fmt.Errorf("encoding the error: %w", err)
	}
	text := f.Code + ": " + f.Message
	if f.Hint != "" {
		text += "; " + f.Hint
	}
	return &sdk.CallToolResult{IsError: true, Content: textContent(text), StructuredContent: json.RawMessage(data)}, nil
}

// upperCased is the envelope of f with its code as agents know codes (records §2).
func upperCased(f *fault.Error) fault.Envelope {
	envelope := fault.EnvelopeOf(f)
	envelope.Error.Code = strings.ToUpper(envelope.Error.Code)
	if f.Hint == "" && f.Kind == fault.Invalid {
		envelope.Error.Hint = "correct the arguments and call again"
	}
	return envelope
}

// ignoredKey is where a result names the arguments that its tool does not have.
const ignoredKey = "cairn/ignored"

// Where the result of a tool that writes memories names the key under which the call
// can be repeated, and says that it was a repetition (memories §9).
const (
	idempotencyKey = "cairn/idempotency-key"
	replayedKey    = "cairn/idempotency-replayed"
)

// What of the ignored arguments is told: so many names, of so many bytes.
const (
	maxIgnored     = 20
	maxIgnoredName = 64
)

// noteIgnored tells in a result what was ignored.
func (c Call) noteIgnored(result *sdk.CallToolResult) *sdk.CallToolResult {
	if names := c.ignoredNames(); len(names) > 0 {
		result.Meta = sdk.Meta{ignoredKey: names}
	}
	return result
}

// noteReceipt tells in a result the call's receipt. Memories ignore no arguments. An
// error has none: nothing was stored, and a key of the caller's own is known to it.
func (c Call) noteReceipt(result *sdk.CallToolResult) *sdk.CallToolResult {
	if c.receipt.Key != "" {
		result.Meta = sdk.Meta{idempotencyKey: c.receipt.Key}
	}
	if c.receipt.Replayed {
		result.Meta[replayedKey] = true
	}
	return result
}

// ignoredNames are the ignored arguments as far as they are told.
func (c Call) ignoredNames() []string {
	names := make([]string, 0, maxIgnored)
	for _, name := range c.ignored[:min(len(c.ignored), maxIgnored)] {
		names = append(names, strings.ToValidUTF8(name[:min(len(name), maxIgnoredName)], ""))
	}
	return names
}

func textContent(texts ...string) []sdk.Content {
	content := make([]sdk.Content, len(texts))
	for i, text := range texts {
		content[i] = &sdk.TextContent{Text: text}
	}
	return content
}
