package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// serve starts an idle MCP server on the store at db, as a session has. It returns after the
// server has opened the store. stop ends the server and waits for it.
func (b *bench) serve(ctx context.Context, db string) (stop func() error, err error) {
	p := b.cairnProgram(db, "serve")
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env, cmd.Dir, cmd.Stdout = p.env, p.dir, io.Discard
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	if err := awaitFile(ctx, db+"-shm"); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// awaitFile waits until a file exists. The file shows that SQLite has opened the store.
func awaitFile(ctx context.Context, path string) error {
	const patience, look = 10 * time.Second, 10 * time.Millisecond
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		if err := waitUntil(ctx, time.Now().Add(look)); err != nil {
			return err
		}
	}
	return fmt.Errorf("the server did not open the store within %s", patience)
}
