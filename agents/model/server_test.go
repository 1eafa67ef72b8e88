package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recorded returns the outlines of recorded requests of real programs.
func recorded(t *testing.T) map[string]Request {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded requests", err)
	}
	requests := map[string]Request{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r Request
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		requests[strings.TrimSuffix(filepath.Base(file), ".json")] = r
	}
	return requests
}

func startServer(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask posts a request and returns the JSON values of the response. A stream has one value per
// event.
func ask(t *testing.T, base string, r Request) []string {
	t.Helper()
	body, err := json.Marshal(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(base+r.Path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %d", response.StatusCode)
	}
	var values []string
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		data, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return []string{string(data)}
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "[DONE]" {
			if !json.Valid([]byte(data)) {
				t.Errorf("an event is not JSON: %s", data)
			}
			values = append(values, data)
		}
	}
	return values
}

func everyStep() []Step {
	return []Step{
		Shell("python3 test_calc.py"), Read("/kiln/calc.py"), Edit("/kiln/calc.py", "old", "new"),
		Tool("search", map[string]any{"query": "mean"}), Say("Fixed."),
	}
}

// TestRequestsOfEveryProgramAreAnsweredWithItsOwnTools checks that each step becomes a call of
// an offered tool, or of the program's tool that loads tools.
func TestRequestsOfEveryProgramAreAnsweredWithItsOwnTools(t *testing.T) {
	t.Parallel()
	for program, request := range recorded(t) {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			for _, step := range everyStep() {
				base := s.Script(program, []Step{step})
				answer := strings.Join(ask(t, base, request), "\n")
				main, _ := s.Requests(program)
				if len(main) != 1 {
					t.Fatalf("%s: %d requests kept", step.Kind, len(main))
				}
				response := main[0].Response
				if step.Kind == KindSay {
					if !strings.Contains(answer, step.Text) {
						t.Errorf("the text is missing in %s", answer)
					}
					continue
				}
				if len(response.Calls) != 1 || response.Missing != "" {
					t.Fatalf("%s: %+v", step.Kind, response)
				}
				checkCall(t, response.Calls[0], offeredTools(request.Body))
				if !strings.Contains(answer, `"`+response.Calls[0].Name+`"`) {
					t.Errorf("the call is missing in %s", answer)
				}
			}
		})
	}
}

// checkCall checks that a tool is offered and that the call has its required parameters.
func checkCall(t *testing.T, c Call, tools []tool) {
	t.Helper()
	i := slices.IndexFunc(tools, func(o tool) bool { return o.name == c.Name && o.namespace == c.Namespace })
	if i < 0 {
		t.Errorf("%s is not offered", c.Name)
		return
	}
	if tools[i].custom {
		if c.Input == "" {
			t.Errorf("%s has no input", c.Name)
		}
		return
	}
	for _, key := range []string{"input_schema", "parameters", "parametersJsonSchema"} {
		schema, _ := tools[i].definition[key].(map[string]any)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := c.Args[text(name)]; !ok {
				t.Errorf("%s lacks %s: %v", c.Name, name, c.Args)
			}
		}
	}
}

func TestAScriptThatIsOverEndsTheTurn(t *testing.T) {
	t.Parallel()
	for program, request := range recorded(t) {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			base := s.Script(program, nil)
			if answer := strings.Join(ask(t, base, request), "\n"); !strings.Contains(answer, "Nothing is left to do.") {
				t.Errorf("%s", answer)
			}
		})
	}
}

func TestARequestWithoutToolsTakesNoStep(t *testing.T) {
	t.Parallel()
	for program, request := range recorded(t) {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			base := s.Script(program, []Step{Say("The step.")})
			title := request
			title.Body = map[string]any{"stream": request.Body["stream"], "model": "m"}
			if answer := strings.Join(ask(t, base, title), "\n"); strings.Contains(answer, "The step.") {
				t.Errorf("%s", answer)
			}
			if answer := strings.Join(ask(t, base, request), "\n"); !strings.Contains(answer, "The step.") {
				t.Errorf("%s", answer)
			}
			main, others := s.Requests(program)
			if len(main) != 1 || len(others) != 1 {
				t.Errorf("%d main requests and %d others", len(main), len(others))
			}
		})
	}
}
