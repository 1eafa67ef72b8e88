package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// mailServer is a running `cairn serve --http` with a separate home.
type mailServer struct {
	program
	cmd    *exec.Cmd
	home   string // data folder of the server
	origin string // http://127.0.0.1:PORT
	token  string
	http   *http.Client
}

// args contains the arguments of a tool.
type args = map[string]any

// mailCall calls a tool of mail and decodes its result into out, unless out is nil. It returns
// a *mailRefusal if the server refuses the call.
type mailCall func(ctx context.Context, tool string, a args, out any) error

// mailRefusal is a response that is not a result.
type mailRefusal struct {
	status int // 200 for a refusal received by MCP
	text   string
}

func (r *mailRefusal) Error() string { return fmt.Sprintf("%d %.300s", r.status, r.text) }

// startMail starts a server on a free loopback port over the store in a folder. The folder may
// be new.
func (b *bench) startMail(ctx context.Context, home string) (*mailServer, error) {
	const patience = 30 * time.Second
	env := []string{"HOME=" + home, "USERPROFILE=" + home, "CAIRN_HOME=" + home, "PATH=" + os.Getenv("PATH")}
	m := &mailServer{program: program{path: b.cairn, env: env, dir: home}, home: home}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	said, err := os.Create(filepath.Join(home, "serve.log"))
	if err != nil {
		return nil, err
	}
	defer said.Close()
	m.cmd = exec.CommandContext(ctx, b.cairn, "serve", "--http", ":0")
	m.cmd.Env, m.cmd.Dir, m.cmd.Stderr = env, home, said
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	address := regexp.MustCompile(`(?m)^cairn: serving (http://\S+) \(token in (.*)\)$`)
	for end := time.Now().Add(patience); ; {
		text, err := os.ReadFile(said.Name())
		if found := address.FindSubmatch(text); err == nil && found != nil {
			token, err := os.ReadFile(string(found[2]))
			m.origin, m.token = string(found[1]), strings.TrimSpace(string(token))
			m.http = &http.Client{Transport: &http.Transport{
				MaxIdleConnsPerHost: 10_000, DisableCompression: true,
				IdleConnTimeout: 30 * time.Second, // closes idle connections before the server does, which would fail a concurrent request
			}}
			return m, err
		}
		if err = errors.Join(err, waitUntil(ctx, time.Now().Add(10*time.Millisecond))); err == nil && time.Now().After(end) {
			err = fmt.Errorf("the server did not begin to listen within %s: %s", patience, text)
		}
		if err != nil {
			return nil, errors.Join(err, m.cmd.Process.Kill(), m.cmd.Wait())
		}
	}
}

// stop interrupts the server, which must exit without an error.
func (m *mailServer) stop() error {
	m.http.CloseIdleConnections()
	if err := m.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return m.cmd.Wait()
}

// warnings returns the lines that the server has written after its address.
func (m *mailServer) warnings() ([]string, error) {
	said, err := os.ReadFile(filepath.Join(m.home, "serve.log"))
	return strings.Split(strings.TrimSpace(string(said)), "\n")[1:], err
}

// run runs a cairn command on the server's store and returns its output.
func (m *mailServer) run(ctx context.Context, arguments ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, m.path, arguments...)
	cmd.Env, cmd.Dir = m.env, m.dir
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("cairn %s: %w: %s", strings.Join(arguments, " "), err, bytes.TrimSpace(failed.Stderr))
	}
	return out, err
}

// post sends JSON and returns the response.
func (m *mailServer) post(ctx context.Context, path string, body any, header ...string) (status int, answer []byte, h http.Header, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.origin+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+m.token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := m.http.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, response.Header, errors.Join(err, response.Body.Close())
}

// mirror calls tools as JSON, each at a separate path.
func (m *mailServer) mirror(ctx context.Context, tool string, a args, out any) error {
	key, ok := a["project_key"].(string)
	if !ok {
		key = "*"
	}
	rest := args{}
	for name, value := range a {
		if name != "project_key" {
			rest[name] = value
		}
	}
	status, answer, _, err := m.post(ctx, "/v1/projects/"+url.PathEscape(key)+"/mail/"+tool, rest)
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return &mailRefusal{status, string(answer)}
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

// session begins an MCP session and returns a function that calls tools in it.
func (m *mailServer) session(ctx context.Context) (mailCall, error) {
	const accept = "application/json, text/event-stream"
	message := func(id int, method string, params any) args {
		body := args{"jsonrpc": "2.0", "method": method, "params": params}
		if id > 0 {
			body["id"] = id
		}
		return body
	}
	status, answer, header, err := m.post(ctx, "/mcp", message(1, "initialize", args{
		"protocolVersion": "2025-11-25", "capabilities": args{}, "clientInfo": args{"name": "cairn-bench", "version": "1"},
	}), "Accept", accept)
	if err != nil {
		return nil, err
	}
	id := header.Get("Mcp-Session-Id")
	if status != http.StatusOK || id == "" {
		return nil, &mailRefusal{status, string(answer)}
	}
	more := []string{"Accept", accept, "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"}
	if status, answer, _, err = m.post(ctx, "/mcp", message(0, "notifications/initialized", args{}), more...); err != nil {
		return nil, err
	}
	if status != http.StatusAccepted {
		return nil, &mailRefusal{status, string(answer)}
	}
	sent := 1
	return func(ctx context.Context, tool string, a args, out any) error {
		sent++
		status, answer, _, err := m.post(ctx, "/mcp", message(sent, "tools/call", args{"name": tool, "arguments": a}), more...)
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return &mailRefusal{status, string(answer)}
		}
		return readMCP(answer, out)
	}, nil
}

// readMCP decodes the result of a call from a response: a message, or events of which one is
// the message.
func readMCP(answer []byte, out any) error {
	for line := range bytes.Lines(answer) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && bytes.Contains(data, []byte(`"id":`)) {
			answer = data
		}
	}
	var m struct {
		Error  json.RawMessage
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		return err
	}
	if m.Error != nil || m.Result.IsError || len(m.Result.Content) != 1 {
		return &mailRefusal{http.StatusOK, string(answer)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal([]byte(m.Result.Content[0].Text), out)
}
