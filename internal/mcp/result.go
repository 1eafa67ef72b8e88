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
	"cairn/internal/mcp/toolargs"
	"cairn/internal/memory"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// success returns the result for a tool's value. Its structured content is an object
// (amendments §B.2).
func success(v any) (*sdk.CallToolResult, error) {
	switch said := v.(type) {
	case Text:
		structured, err := wrapResult(string(said))
		return &sdk.CallToolResult{Content: textContent(string(said)), StructuredContent: structured}, err
	case Empty:
		structured, err := toolargs.JSON(emptyList{[]any{}, said.Hint})
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
		structured, err = wrapResult(structured)
	}
	return &sdk.CallToolResult{Content: textContent(string(data)), StructuredContent: structured}, err
}

// emptyList is the structured content for an [Empty].
type emptyList struct {
	Result []any  `json:"result"`
	Hint   string `json:"hint,omitempty"`
}

// wrapResult puts a result that is not an object into an object.
func wrapResult(v any) (json.RawMessage, error) { return toolargs.JSON(map[string]any{"result": v}) }

// resultJSON returns a tool's value as JSON; a nil list is an empty list.
func resultJSON(v any) ([]byte, error) {
	data, err := toolargs.JSON(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	if string(data) == "null" && v != nil && reflect.TypeOf(v).Kind() == reflect.Slice {
		data = []byte("[]")
	}
	return data, nil
}

// presenter converts the error of a call to a result or a protocol error.
type presenter func(ctx context.Context, log *slog.Logger, tool string, err error) (*sdk.CallToolResult, error)

func (e ErrorFormat) presenter() presenter {
	switch e {
	case ErrorEnvelope:
		return envelopeFailure
	case ErrorStatus:
		return statusFailure
	}
	return failure
}

// failure presents an error. An error that the model can act on becomes a tool result,
// with the envelope as structured content. Any other error becomes a JSON-RPC error. An
// unclassified error is only logged: its text may contain a path.
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
		data, err := toolargs.JSON(map[string]string{"code": f.Code, "recovery_hint": f.Hint})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.Message, Data: data}
	}
	envelope, err := toolargs.JSON(fault.EnvelopeOf(f))
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

// envelopeFailure is failure with the envelope as the text. Every classified error is a
// result, also an error of the store.
func envelopeFailure(ctx context.Context, log *slog.Logger, tool string, err error) (*sdk.CallToolResult, error) {
	f, known := errors.AsType[*fault.Error](err)
	if !known {
		return failure(ctx, log, tool, err)
	}
	if f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		log.ErrorContext(ctx, "a tool failed", "tool", tool, "code", f.Code, "error", f.Message)
	}
	data, err := toolargs.JSON(upperCaseEnvelope(f))
	if err != nil {
		return nil, fmt.Errorf("encoding the error: %w", err)
	}
	return &sdk.CallToolResult{IsError: true, Content: textContent(string(data)), StructuredContent: json.RawMessage(data)}, nil
}

// statusFailure presents every error as a result: a line that begins with the code, and the
// envelope with the HTTP status of the error (memories §9).
func statusFailure(ctx context.Context, log *slog.Logger, tool string, err error) (*sdk.CallToolResult, error) {
	f, known := errors.AsType[*fault.Error](err)
	if !known {
		return failure(ctx, log, tool, err)
	}
	if f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		log.ErrorContext(ctx, "a tool failed", "tool", tool, "code", f.Code, "error", f.Message)
	}
	data, err := toolargs.JSON(struct {
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

// upperCaseEnvelope returns the envelope of f with its code in upper case (records §2).
func upperCaseEnvelope(f *fault.Error) fault.Envelope {
	envelope := fault.EnvelopeOf(f)
	envelope.Error.Code = strings.ToUpper(envelope.Error.Code)
	if f.Hint == "" && f.Kind == fault.Invalid {
		envelope.Error.Hint = "correct the arguments and call again"
	}
	return envelope
}

// ignoredKey is the key under which a result names unknown arguments.
const ignoredKey = "cairn/ignored"

// Keys in the result of a tool that writes memories: the idempotency key of the call, and
// whether the call was a repetition (memories §9).
const (
	idempotencyKey = "cairn/idempotency-key"
	replayedKey    = "cairn/idempotency-replayed"
)

// Limits of the ignored arguments in a result: number of names, and bytes of each.
const (
	maxIgnored     = 20
	maxIgnoredName = 64
)

// noteIgnored adds the ignored arguments to a result.
func (c Call) noteIgnored(result *sdk.CallToolResult) *sdk.CallToolResult {
	if names := c.ignoredNames(); len(names) > 0 {
		result.Meta = sdk.Meta{ignoredKey: names}
	}
	return result
}

// noteReceipt adds the call's receipt to a result. Memories ignore no arguments. An error
// has no receipt: nothing was stored, and the caller knows its own key.
func (c Call) noteReceipt(result *sdk.CallToolResult) *sdk.CallToolResult {
	if c.receipt.Key != "" {
		result.Meta = sdk.Meta{idempotencyKey: c.receipt.Key}
	}
	if c.receipt.Replayed {
		result.Meta[replayedKey] = true
	}
	return result
}

// ignoredNames returns the ignored arguments within the limits of a result.
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
