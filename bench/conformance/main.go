//go:build conformance

// Command cairn-conformance serves the product's MCP edge with the fixtures of the official
// conformance suite on a loopback port, until interrupted. It is used by run.sh and is never
// shipped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"cairn/bench/conformance/fixtures"
	"cairn/internal/mcp"
)

func main() {
	port := flag.Int("port", 0, "loopback port to listen on; 0 takes a free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := serve(ctx, *port)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cairn-conformance:", err)
		os.Exit(1)
	}
}

// serve listens until ctx ends. The first line on standard output is the URL.
func serve(ctx context.Context, port int) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := fixtures.NewServer(log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.Handler(mcp.HTTPOptions{}))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	web.RegisterOnShutdown(func() {
		if err := server.Close(); err != nil {
			log.Error("closing the sessions", "error", err)
		}
	})
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- web.Shutdown(limited)
	})
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
