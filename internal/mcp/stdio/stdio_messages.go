package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// accept queues the messages of a line. It sends an error for anything else.
func (c *Conn) accept(ctx context.Context, l line) error {
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

func (c *Conn) acceptOne(ctx context.Context, data []byte, b *batch) error {
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

func (c *Conn) acceptBatch(ctx context.Context, data []byte) error {
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
	if b.waiting == 0 && len(b.replies) > 0 { // every message was invalid
		return c.send(ctx, join(b.replies))
	}
	return nil
}

// decode reads one message, or returns the error for invalid input. The SDK's decoder
// ignores data after the message, so decode checks the JSON first.
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

// admit adds a call to the calls without a response.
func (c *Conn) admit(msg jsonrpc.Message, b *batch) *jsonrpc.Error {
	request, ok := msg.(*jsonrpc.Request)
	if !ok || !request.IsCall() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, busy := c.calls[request.ID]; busy {
		return invalidRequest("the id is in use by a call that is still running")
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

// take removes a call that gets its response, so that its id can be used again.
func (c *Conn) take(id jsonrpc.ID) call {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.calls[id]
	delete(c.calls, id)
	return entry
}

// collect returns the data to write for a response: the response itself, or all responses
// of its batch if it is the last one, else nil.
func (c *Conn) collect(b *batch, data []byte) []byte {
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

// done records that the response to a call is written or cannot be written.
func (c *Conn) done(entry call) {
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

// refuse sends an error for a message without a usable id. In a batch the error is
// collected with the other responses.
func (c *Conn) refuse(ctx context.Context, b *batch, e *jsonrpc.Error) error {
	data, err := json.Marshal(struct {
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

// withCode adds a code to errors that the SDK sends without one. These are rejections
// before the method is known, such as a call before initialize.
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
