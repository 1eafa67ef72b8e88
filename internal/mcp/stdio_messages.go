package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// accept queues the messages of a line and answers what is none.
func (c *lineConn) accept(ctx context.Context, l line) error {
	if l.tooLong {
		return c.refuse(ctx, nil, invalidRequest("message longer than 16 MiB"))
	}
	data := bytes.TrimSpace(bytes.TrimPrefix(l.data, []byte("\ufeff")))
	if len(data) == 0 {
		return nil
	}
	if data[0] == '[' {
		return c.acceptBatch(ctx, data)
	}
	return c.acceptOne(ctx, data, nil)
}

func (c *lineConn) acceptOne(ctx context.Context, data []byte, b *batch) error {
	msg, refusal := decode(data)
	if refusal == nil {
		refusal = c.admit(msg, b)
	}
	if refusal != nil {
		return c.refuse(ctx, b, refusal)
	}
	c.queue = append(c.queue, msg)
	return nil
}

func (c *lineConn) acceptBatch(ctx context.Context, data []byte) error {
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return c.refuse(ctx, nil, parseError())
	}
	if len(items) == 0 {
		return c.refuse(ctx, nil, invalidRequest("empty batch"))
	}
	b := &batch{}
	for _, item := range items {
		if err := c.acceptOne(ctx, item, b); err != nil {
			return err
		}
	}
	if b.waiting == 0 && len(b.replies) > 0 { // nothing but refusals
		return c.send(ctx, join(b.replies))
	}
	return nil
}

// decode reads one message, or says why it is none. The SDK's decoder does not
// look at what follows the message, so validity is checked first.
func decode(data []byte) (jsonrpc.Message, *jsonrpc.Error) {
	if !json.Valid(data) {
		return nil, parseError()
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil, invalidRequest("not a JSON-RPC 2.0 message")
	}
	return msg, nil
}

// admit enters a call among those to be answered.
func (c *lineConn) admit(msg jsonrpc.Message, b *batch) *jsonrpc.Error {
	request, ok := msg.(*jsonrpc.Request)
	if !ok || !request.IsCall() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, busy := c.calls[request.ID]; busy {
		return invalidRequest("the id is in use by a call that is not answered yet")
	}
	entry := call{batch: b, awaited: request.Method != "subscriptions/listen"}
	c.calls[request.ID] = entry
	if entry.awaited {
		c.awaited++
	}
	if b != nil {
		b.waiting++
	}
	return nil
}

// take removes a call that is being answered, so that its id is free again.
func (c *lineConn) take(id jsonrpc.ID) call {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.calls[id]
	delete(c.calls, id)
	return entry
}

// collect returns what to write for an answer: the answer itself, or all
// answers of its batch when it is the last, or else nil.
func (c *lineConn) collect(b *batch, data []byte) []byte {
	if b == nil {
		return data
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b.replies = append(b.replies, data)
	if b.waiting--; b.waiting > 0 {
		return nil
	}
	return join(b.replies)
}

// done notes that the answer to a call is written or cannot be.
func (c *lineConn) done(entry call) {
	if !entry.awaited {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited--
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

// refuse answers a message that has no usable id. In a batch the answer joins
// the others.
func (c *lineConn) refuse(ctx context.Context, b *batch, e *jsonrpc.Error) error {
	data, err := encode(struct {
		Version string         `json:"jsonrpc"`
		ID      any            `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}{Version: "2.0", Error: e})
	if err != nil {
		return err
	}
	if b != nil {
		b.replies = append(b.replies, data)
		return nil
	}
	return c.send(ctx, data)
}

// withCode gives a code to the errors that the SDK sends without one: what it
// refuses before looking at the method, such as a call before initialize.
func withCode(r *jsonrpc.Response) *jsonrpc.Response {
	if r.Error == nil {
		return r
	}
	if e, ok := errors.AsType[*jsonrpc.Error](r.Error); ok && e.Code != 0 {
		return r
	}
	return &jsonrpc.Response{ID: r.ID, Error: invalidRequest(r.Error.Error())}
}

func join(replies []json.RawMessage) []byte {
	data := []byte{'['}
	for i, reply := range replies {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(data, reply...)
	}
	return append(data, ']')
}

func parseError() *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "not valid JSON"}
}

func invalidRequest(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message}
}
