package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// drainLimit is how long calls may go on after the input has ended.
const drainLimit = 5 * time.Second

// ServeStdio serves one client, one message a line, until in ends or ctx does,
// and closes both in and out. It returns nil at a clean end of input or when
// nobody reads out any more, ctx's cause when ctx ended first, and otherwise the
// error of reading or writing.
//
// A line that is not a message is answered with a JSON-RPC error and the session
// goes on. At the end of input, calls already received are still answered, for
// up to five seconds; when ctx ends they are cancelled. Either way it returns
// only after they have.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	conn := newLineConn(in, out)
	session, err := s.sdk.Connect(ctx, lineTransport{conn}, nil)
	if err != nil {
		return errors.Join(fmt.Errorf("starting the session: %w", err), conn.Close())
	}
	stop := context.AfterFunc(ctx, conn.shut)
	defer stop()
	err = session.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe): // the client is gone
		return nil
	}
	return err
}

// lineTransport hands the SDK a connection made beforehand. The SDK's own one
// ends the session at the first malformed line and drops the answers that are
// still being made when the input ends.
type lineTransport struct{ conn *lineConn }

func (t lineTransport) Connect(context.Context) (sdk.Connection, error) {
	go t.conn.scan()
	go t.conn.print()
	return t.conn, nil
}

// lineConn is a connection that carries one JSON-RPC message a line. Reading and
// writing block in goroutines of their own, so that whoever waits for them can
// give up.
type lineConn struct {
	in     io.ReadCloser
	out    io.WriteCloser
	lines  chan line
	prints chan printing
	closed chan struct{}
	once   sync.Once
	failed error // of closing

	queue []jsonrpc.Message // read and not yet returned; only Read uses it
	ended error             // how the input ended; only Read uses it

	mu       sync.Mutex
	calls    map[jsonrpc.ID]call // received and not yet answered
	awaited  int                 // those of them that end by themselves and are not yet written
	answered chan struct{}       // signals that awaited went down
}

// line is one line of input, or what stands in its place.
type line struct {
	data    []byte
	tooLong bool
	err     error // the input has ended
}

// printing is a line of output on its way.
type printing struct {
	data   []byte
	result chan error // buffered: the one who asked may be gone
}

// call is a request that a client waits for.
type call struct {
	batch   *batch // the batch it came in, or nil
	awaited bool   // it ends by itself, so the end of input waits for it
}

// batch collects the answers to messages that came in one array, which
// revisions before 2025-06-18 allow.
type batch struct {
	waiting int
	replies []json.RawMessage
}

func newLineConn(in io.ReadCloser, out io.WriteCloser) *lineConn {
	return &lineConn{
		in: in, out: out,
		lines: make(chan line), prints: make(chan printing), closed: make(chan struct{}),
		calls: map[jsonrpc.ID]call{}, answered: make(chan struct{}, 1),
	}
}

// SessionID is empty: the connection is the session.
func (c *lineConn) SessionID() string { return "" }

// Close stops reading and writing, also where they are blocked.
func (c *lineConn) Close() error {
	c.shut()
	return c.failed
}

func (c *lineConn) shut() {
	c.once.Do(func() {
		close(c.closed)
		c.failed = errors.Join(c.in.Close(), c.out.Close())
	})
}

// scan reads lines until the input ends or the connection is closed.
func (c *lineConn) scan() {
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

// readLine reads up to the next line feed. The last line may lack one; the end
// of the input is reported with it. Of a line that is too long nothing is kept.
func readLine(r *bufio.Reader) line {
	var l line
	for {
		part, err := r.ReadSlice('\n')
		if l.tooLong = l.tooLong || len(l.data)+len(part) > maxMessage; l.tooLong {
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

// Read returns the next message; io.EOF after the input has ended and the
// calls in progress are answered.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
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
func (c *lineConn) Write(ctx context.Context, msg jsonrpc.Message) error {
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

// drain waits until the calls in progress are answered, for a limited time.
func (c *lineConn) drain(ctx context.Context) {
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

func (c *lineConn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awaited > 0
}

// send writes one line. When ctx ends first the line may still be written.
func (c *lineConn) send(ctx context.Context, data []byte) error {
	p := printing{data: append(data, '\n'), result: make(chan error, 1)}
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
func (c *lineConn) print() {
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
