package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxMessage is the longest message accepted from a client, in bytes.
const MaxMessage = 16 << 20

// drainLimit is how long calls may run after the end of the input.
const drainLimit = 5 * time.Second

// Conn is a connection with one JSON-RPC message per line, and the transport that
// returns it. The SDK's own connection ends the session at the first malformed line, and
// drops the responses of running calls when the input ends. Reading and writing block in
// separate goroutines, so that callers can stop waiting.
type Conn struct {
	in     io.ReadCloser
	out    io.WriteCloser
	lines  chan line
	prints chan outputLine
	closed chan struct{}
	once   sync.Once
	failed error // the error of closing

	queue []jsonrpc.Message // read and not yet returned; only Read uses it
	ended error             // how the input ended; only Read uses it

	mu       sync.Mutex
	calls    map[jsonrpc.ID]call // received calls without a response
	awaited  int                 // number of these calls that end on their own
	answered chan struct{}       // signals that awaited decreased
}

// line is one line of input, or the error that ended the input.
type line struct {
	data    []byte
	tooLong bool
	err     error // the input has ended
}

// outputLine is a line that is being written.
type outputLine struct {
	data   []byte
	result chan error // buffered, because the sender may have stopped waiting
}

// call is a request without a response yet.
type call struct {
	batch   *batch // the batch of the request, or nil
	awaited bool   // the call ends on its own, so the end of the input waits for it
}

// batch collects the responses to messages in one array, which revisions before
// 2025-06-18 allow.
type batch struct {
	waiting int
	replies []json.RawMessage
}

// NewConn returns a connection that reads in and writes out. It closes both.
func NewConn(in io.ReadCloser, out io.WriteCloser) *Conn {
	return &Conn{
		in: in, out: out,
		lines: make(chan line), prints: make(chan outputLine), closed: make(chan struct{}),
		calls: map[jsonrpc.ID]call{}, answered: make(chan struct{}, 1),
	}
}

// Connect starts reading and writing, and returns the connection. The SDK calls it once.
func (c *Conn) Connect(context.Context) (sdk.Connection, error) {
	go c.scan()
	go c.print()
	return c, nil
}

// SessionID is empty: the connection is the session.
func (c *Conn) SessionID() string { return "" }

// Close stops reading and writing, even if they are blocked.
func (c *Conn) Close() error {
	c.closeBoth()
	return c.failed
}

func (c *Conn) closeBoth() {
	c.once.Do(func() {
		close(c.closed)
		c.failed = errors.Join(c.in.Close(), c.out.Close())
	})
}

// scan reads lines until the input ends or the connection is closed.
func (c *Conn) scan() {
	r := bufio.NewReaderSize(c.in, 64<<10)
	for {
		l := readLine(r)
		select {
		case c.lines <- l:
		case <-c.closed:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads up to the next line feed. The last line may have none; then the end of
// the input is reported with it. A line that is too long is discarded.
func readLine(r *bufio.Reader) line {
	var l line
	for {
		part, err := r.ReadSlice('\n')
		if l.tooLong = l.tooLong || len(l.data)+len(part) > MaxMessage; l.tooLong {
			l.data = nil
		} else {
			l.data = append(l.data, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			l.err = err
			return l
		}
	}
}

// Read returns the next message. It returns io.EOF after the end of the input, when the
// running calls have their responses.
func (c *Conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			next := c.queue[0]
			c.queue = c.queue[1:]
			return next, nil
		}
		if c.ended != nil {
			c.drain(ctx)
			return nil, c.ended
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l := <-c.lines:
			if err := c.accept(ctx, l); err != nil {
				return nil, err
			}
			c.ended = l.err
		}
	}
}

// Write sends a message, or keeps it until its batch is complete.
func (c *Conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	response, isResponse := msg.(*jsonrpc.Response)
	if isResponse {
		msg = withCode(response)
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	if !isResponse {
		return c.send(ctx, data)
	}
	entry := c.take(response.ID)
	defer c.done(entry)
	if data = c.collect(entry.batch, data); data == nil {
		return nil
	}
	return c.send(ctx, data)
}

// drain waits for the running calls, for a limited time.
func (c *Conn) drain(ctx context.Context) {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	for c.busy() {
		select {
		case <-c.answered:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		case <-c.closed:
			return
		}
	}
}

func (c *Conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awaited > 0
}

// send writes one line. If ctx ends first, the line may still be written later.
func (c *Conn) send(ctx context.Context, data []byte) error {
	p := outputLine{data: append(data, '\n'), result: make(chan error, 1)}
	select {
	case c.prints <- p:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
	select {
	case err := <-p.result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

// print writes lines until the connection is closed.
func (c *Conn) print() {
	for {
		select {
		case p := <-c.prints:
			_, err := c.out.Write(p.data)
			p.result <- err
		case <-c.closed:
			return
		}
	}
}
