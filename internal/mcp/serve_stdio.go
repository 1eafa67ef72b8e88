package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"cairn/internal/mcp/stdio"
)

// ServeStdio serves one client, with one message per line, until in or ctx ends. It closes in
// and out. It returns nil at the end of the input, or when the client has closed its end of
// out. If ctx ends first, it returns ctx's cause. Otherwise it returns the error of reading or
// writing.
//
// A line that is not a message gets a JSON-RPC error, and the session continues. At the
// end of the input, calls already received may run for up to five seconds. When ctx ends
// they are cancelled. In both cases it returns after they have returned.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	conn := stdio.NewConn(in, out)
	session, err := s.sdk.Connect(ctx, conn, nil)
	if err != nil {
		return errors.Join(fmt.Errorf("starting the session: %w", err), conn.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	err = session.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe): // the client has disconnected
		return nil
	}
	return err
}
