package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"cairn/internal/fault"
	"cairn/internal/memory"
)

// Response is what a tool said to a caller that does not speak MCP.
type Response struct {
	Body    []byte   // JSON, or the bare text of a [Text]
	Text    bool     // Body is a [Text]
	Ignored []string // arguments that were sent and that the tool does not have, at most 20; also beside an error

	Receipt memory.WriteInfo // of a tool that writes memories, also beside an error; else zero
}

// CallInfo is who asks a tool.
type CallInfo struct {
	AgentToken string // the caller's X-Cairn-Agent-Token, "" for none (mail §4)
	Bearer     Bearer
	Trace      string // traceparent of the request, which rows of memories keep; "" for none
	Key        string // Idempotency-Key of the request, for a tool of memories that is given no idempotency_key; "" for none
}

// Invoke calls t with a JSON object as a client elsewhere would that keeps no
// transport session ([Call.Remote], [Call.Connection] ""). project is what an
// omitted project means, from who asks. Its errors are those of the arguments and of
// the work, and code forbidden for a bearer who is not to use the tool; see
// [Tool.Envelope].
func (t Tool) Invoke(ctx context.Context, arguments json.RawMessage, project Scope, from CallInfo) (Response, error) {
	if !t.levelled && !from.Bearer.IsOwner() {
		return Response{}, ownersOnly()
	}
	c, in, err := t.decode(arguments, project)
	answer := Response{Ignored: c.ignoredNames()}
	if err != nil {
		return answer, err
	}
	c.Remote, c.AgentToken, c.bearer, c.trace, c.key = true, from.AgentToken, from.Bearer, from.Trace, from.Key
	v, err := t.do(ctx, c, in)
	answer.Receipt = *c.receipt
	if err != nil {
		return answer, err
	}
	switch said := v.(type) {
	case Text:
		answer.Body, answer.Text = []byte(said), true
		return answer, nil
	case TextAndValue:
		v = said.Value
	case Empty:
		v = []any{}
	}
	answer.Body, err = resultJSON(v)
	return answer, err
}

// Envelope is an error of t as its clients know it: with the code in upper case
// where MCP has it so, and without the text of what nobody classified, since it
// may name a path.
func (t Tool) Envelope(err error) fault.Envelope {
	f, known := errors.AsType[*fault.Error](err)
	if !known {
		f = fault.New(fault.Internal, "internal", "internal error")
	}
	if t.Errors == ErrorEnvelope {
		return upperCased(f)
	}
	return fault.EnvelopeOf(f)
}
