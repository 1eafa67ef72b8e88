package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"cairn/internal/fault"
	"cairn/internal/mcp/toolargs"
	"cairn/internal/memory"
)

// Response is the result of a tool for a caller that does not use MCP.
type Response struct {
	Body    []byte   // JSON, or the plain text of a [Text]
	Text    bool     // Body is a [Text]
	Ignored []string // unknown arguments of the call, at most 20; also set with an error

	Receipt memory.WriteInfo // of a tool that writes memories, also set with an error; else zero
}

// CallInfo describes the caller of a tool.
type CallInfo struct {
	AgentToken string // the caller's X-Cairn-Agent-Token, or "" (mail §4)
	Bearer     Bearer
	Trace      string // traceparent of the request, which rows of memories store; or ""
	Key        string // Idempotency-Key of the request, used by a tool of memories without idempotency_key; or ""
}

// Invoke calls t with a JSON object, as a remote client without a transport session
// ([Call.Remote], [Call.Connection] ""). project is the default project, from is the
// caller. It returns errors of the arguments and of the tool, and the code forbidden for a
// bearer who must not use the tool; see [Tool.Envelope].
func (t Tool) Invoke(ctx context.Context, arguments json.RawMessage, project toolargs.Scope, from CallInfo) (Response, error) {
	if !t.checksLevel && !from.Bearer.IsOwner() {
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

// Envelope returns an error of t in the form that its clients expect. The code is in upper
// case if MCP has it so. The text of an unclassified error is removed, because it may
// contain a path.
func (t Tool) Envelope(err error) fault.Envelope {
	f, known := errors.AsType[*fault.Error](err)
	if !known {
		f = fault.New(fault.Internal, "internal", "internal error")
	}
	if t.Errors == ErrorEnvelope {
		return upperCaseEnvelope(f)
	}
	return fault.EnvelopeOf(f)
}
