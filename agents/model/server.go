// Package model is a scripted model on loopback. It supports the APIs that agent programs use,
// with and without streaming: Anthropic Messages, OpenAI Responses, OpenAI chat completions and
// Gemini generateContent. If a request offers the program's own tools, the response is the next
// step of the run's script. All requests are stored.
package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Server is the scripted model.
type Server struct {
	URL string // http://127.0.0.1:PORT

	dir  string // folder in which requests are stored as RUN-NNN.json
	http *http.Server
	mu   sync.Mutex
	runs map[string]*run
}

// run is one run of an agent program.
type run struct {
	steps    []Step
	next     int
	searched map[string]bool // tools that the program was asked to load
	requests []Request
}

// Request is one request of a program.
type Request struct {
	Protocol string         `json:"protocol"` // anthropic, responses, chat, gemini; "" for others
	Method   string         `json:"method"`
	Path     string         `json:"path"`
	Main     bool           `json:"main"` // whether the request offers the program's own tools
	Body     map[string]any `json:"body"`
	Response Response       `json:"response"`
}

// Response is the model's response, independent of the protocol.
type Response struct {
	Text    string `json:"text,omitempty"`
	Calls   []Call `json:"calls,omitempty"`
	Missing string `json:"missing,omitempty"` // the request offers no tool for this step
	Tokens  int    `json:"tokens"`
}

// Start starts a server on a free port of the loopback interface. It stores requests in dir.
func Start(dir string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + listener.Addr().String(), dir: dir, runs: map[string]*run{}}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(listener) }() // it returns when Close is called
	return s, nil
}

// Close stops the server.
func (s *Server) Close() error { return s.http.Close() }

// Script registers the script of a run and returns the base URL for its program.
func (s *Server) Script(name string, steps []Step) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[name] = &run{steps: steps, searched: map[string]bool{}}
	return s.URL + "/run/" + name
}

// Requests returns the requests of a run, in order: requests that offered the program's own
// tools, and all others.
func (s *Server) Requests(name string) (main, others []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[name]; r != nil {
		for _, request := range r.requests {
			if request.Main {
				main = append(main, request)
			} else {
				others = append(others, request)
			}
		}
	}
	return main, others
}

// ServeHTTP responds to one request of a program.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path := splitPath(r.URL.Path)
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program has closed the connection
	}
	request := Request{Protocol: protocolOf(path), Method: r.Method, Path: path}
	_ = json.Unmarshal(data, &request.Body) // a body that is not JSON stays empty
	if request.Protocol == "" || r.Method != http.MethodPost {
		s.keep(name, request)
		serveOther(w, r.Method, path, len(data))
		return
	}
	tools := offeredTools(request.Body)
	request.Main = hasOwnTools(tools)
	request.Response = Response{Text: summaryFor(data), Tokens: defaultTokens}
	if request.Main {
		step := s.nextStep(name)
		step.wait()
		request.Response = s.respond(name, step, tools)
	}
	s.keep(name, request)
	send(w, request)
}

// summary is the response to requests without tools: titles, summaries, classifications.
const summary = "The user works on the kiln calculator. mean() was fixed, total() is next."

// summaryFor returns the summary in the form that a program expects.
func summaryFor(request []byte) string {
	if bytes.Contains(request, []byte("state_snapshot")) {
		return "<state_snapshot>\n<overall_goal>" + summary + "</overall_goal>\n</state_snapshot>"
	}
	return summary
}

// splitPath separates the run's name from a path below its base URL.
func splitPath(path string) (name, rest string) {
	if below, ok := strings.CutPrefix(path, "/run/"); ok {
		name, rest, _ = strings.Cut(below, "/")
		return name, "/" + rest
	}
	return "", path
}

func protocolOf(path string) string {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return "anthropic"
	case strings.HasSuffix(path, "/responses"):
		return "responses"
	case strings.HasSuffix(path, "/chat/completions"):
		return "chat"
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return "gemini"
	}
	return ""
}

// serveOther responds to the small requests that are not part of the conversation.
func serveOther(w http.ResponseWriter, method, path string, size int) {
	switch {
	case strings.HasSuffix(path, "/models"):
		sendJSON(w, map[string]any{"object": "list", "data": []any{}, "models": []any{}})
	case strings.HasSuffix(path, "/count_tokens"):
		sendJSON(w, map[string]any{"input_tokens": size / 4})
	case strings.HasSuffix(path, ":countTokens"):
		sendJSON(w, map[string]any{"totalTokens": size / 4})
	case method == http.MethodPost:
		sendJSON(w, map[string]any{})
	default:
		http.NotFound(w, nil)
	}
}

// nextStep removes and returns the next step of a run's script.
func (s *Server) nextStep(name string) Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[name]
	if r == nil || r.next >= len(r.steps) {
		return Say("Nothing is left to do.")
	}
	r.next++
	return r.steps[r.next-1]
}

// respond converts a step to a response with one of the offered tools. If the program must load
// the tool first, the response requests that and the step is repeated.
func (s *Server) respond(name string, step Step, tools []tool) Response {
	out := Response{Tokens: step.tokens()}
	if step.Kind == KindSay {
		out.Text = step.Text
		return out
	}
	if call, ok := callFor(step, tools); ok {
		out.Calls = []Call{call}
		return out
	}
	if wanted, ok := s.search(name, step, tools); ok {
		out.Calls = []Call{{Name: pick(tools, toolSearch...).name, Args: map[string]any{"query": "select:" + wanted, "max_results": 5}}}
		return out
	}
	out.Missing = fmt.Sprintf("%s %s", step.Kind, step.Tool)
	out.Text = "There is no tool for: " + out.Missing
	return out
}

// toolSearch contains the names of tools that load other tools.
var toolSearch = []string{"ToolSearch", "tool_search"}

// search returns the tool that the program should load for a step: the step's own tool first,
// then call_tool. It moves back in the script, so that the step is repeated.
func (s *Server) search(name string, step Step, tools []tool) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[name]
	if r == nil || step.Kind != KindTool || pick(tools, toolSearch...) == nil {
		return "", false
	}
	for _, wanted := range []string{"mcp__cairn__" + step.Tool, "mcp__cairn__call_tool"} {
		if !r.searched[wanted] {
			r.searched[wanted] = true
			r.next--
			return wanted, true
		}
	}
	return "", false
}

// keep stores a request in memory and as a file.
func (s *Server) keep(name string, request Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[name]
	if r == nil {
		return
	}
	r.requests = append(r.requests, request)
	data, err := json.MarshalIndent(request, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("%s-%03d.json", name, len(r.requests))), data, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agents: cannot keep a request:", err)
	}
}
