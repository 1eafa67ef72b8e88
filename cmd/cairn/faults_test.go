package main

import (
	"bytes"
	"cairn/internal/store/storetest"
	"crypto/rand"
	"database/sql"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// fails expects an exit code, empty standard output, and one line on standard error that contains
// all of the words.
func (h *home) fails(what string, e ending, code int, words ...string) {
	h.t.Helper()
	if e.code != code || e.stdout != "" || strings.Count(e.stderr, "\n") != 1 || len([]rune(e.stderr)) > 301 ||
		!strings.HasPrefix(e.stderr, "cairn: ") {
		h.t.Errorf("%s: exit %d, want %d; stdout %q, stderr %q", what, e.code, code, e.stdout, e.stderr)
	}
	for _, w := range words {
		if !strings.Contains(e.stderr, w) {
			h.t.Errorf("%s: %q does not say %q", what, e.stderr, w)
		}
	}
}

// untouched runs a function that must leave the database unchanged, byte for byte. It may only add
// the files of SQLite, the write lock and the logs of errors and of hook times.
func (h *home) untouched(run func()) {
	h.t.Helper()
	before, err := os.ReadFile(h.db())
	if err != nil {
		h.t.Fatal(err)
	}
	run()
	after, err := os.ReadFile(h.db())
	if err != nil || !bytes.Equal(before, after) {
		h.t.Errorf("the file was changed (%v)", err)
	}
	for name := range h.files() {
		switch name {
		case ".", "cairn.db", "cairn.db-lock", "cairn.db-shm", "cairn.db-wal", "cairn.log", "hook-times":
		default:
			h.t.Errorf("%s was put beside it", name)
		}
	}
	log, err := os.ReadFile(filepath.Join(h.dataDir(), "cairn.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) || bytes.Contains(log, []byte("hello again")) {
		h.t.Errorf("the log of errors: %v, %s", err, log)
	}
}

// everyEvent returns the events that open the store, each with its exit code for a damaged store.
// The code is 2 only where that does not block the agent.
func (h *home) everyEvent() map[string]int {
	return map[string]int{
		"PostToolUse": 2, "PostToolUseFailure": 2, "SessionStart": 2, "SessionEnd": 2, "Notification": 2,
		"UserPromptSubmit": 1, "Stop": 1, "SubagentStop": 1, "PreToolUse": 1, "PreCompact": 1, "PostCompact": 1,
	}
}

// anyEvent returns a payload with the fields that each of the events needs.
func (h *home) anyEvent(event string) []byte {
	return h.payload(event, fields{
		"source": "startup", "prompt": "hello again", "tool_name": "Bash", "tool_use_id": "toolu_" + event,
		"tool_input": fields{"command": "make"}, "error": "Exit code 1", "reason": "exit",
		"last_assistant_message": "done", "compact_summary": "all of it",
	})
}

// TestDamagedStoreIsRefusedAndLeftAsItIs checks the exit codes of observations §4.1 for several
// kinds of damage.
func TestDamagedStoreIsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(file []byte) []byte{
		"no database":              func([]byte) []byte { return bytes.Repeat([]byte("once upon a time "), 3000) },
		"random bytes in the file": func(f []byte) []byte { return noise(f, 4096, len(f)) },
		"random bytes in its head": func(f []byte) []byte { return noise(f, 0, 4096) },
		"random bytes in schema":   func(f []byte) []byte { return noise(f, 100, 4096) },
		"cut":                      func(f []byte) []byte { return f[:4096+1000] },
		"zeros":                    func(f []byte) []byte { return make([]byte, len(f)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.worked()
			file := h.storeFile()
			h.putStore(damage(file))
			h.untouched(func() {
				for event, code := range h.everyEvent() {
					h.fails(event, h.record(h.anyEvent(event)), code, "cairn: record: ", "cairn doctor --salvage")
				}
				h.recorded(h.payload("SubagentStart", nil)) // does not open the store
				h.recorded(h.payload("CwdChanged", nil))
				h.fails("search", h.run(h.command("search", "refund"), nil), 2, "cairn doctor --salvage")
				h.fails("import", h.run(h.command("import", h.repo), nil), 2, "cairn doctor --salvage")
				h.fails("mark", h.run(h.command("mark", "remember this"), nil), 2, "cairn doctor --salvage")
				h.fails("serve", h.run(h.command("serve"), nil), 2, repairs()...)
			})
		})
	}
}

// noise returns a copy of a file in which the bytes from from up to to are random.
func noise(file []byte, from, to int) []byte {
	out := bytes.Clone(file)
	rand.Read(out[from:to]) // never fails
	return out
}

// refusesQuestions expects that a server answers requests with a protocol error that contains want
// and no path.
func (h *home) refusesQuestions(want string) {
	h.t.Helper()
	c := h.dial("", nil)
	defer c.Close() // the exit code of such a server is not specified
	for tool, args := range map[string]fields{
		"search": {"query": "refund"}, "recent_context": {}, "get_observations": {"ids": []int{1}},
		"timeline": {"anchor": 1}, "session_trace": {"session_id": "s1"}, "file_history": {"file_path": "a.go"},
	} {
		_, err := c.CallTool(h.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok || e.Code != jsonrpc.CodeInternalError || !strings.Contains(e.Message, want) || strings.Contains(e.Message, h.dir) {
			h.t.Errorf("%s: %v, want an internal error that says %q", tool, err, want)
		}
	}
}

// sqlite runs statements directly on the store, bypassing cairn.
func (h *home) sqlite(db *sql.DB, statements ...string) {
	h.t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(h.t.Context(), s); err != nil {
			h.t.Fatalf("%s: %v", s, err)
		}
	}
}

// raw opens the store directly, bypassing cairn, with one connection.
func (h *home) raw() *sql.DB {
	h.t.Helper()
	db := storetest.OpenFile(h.db(), "")
	db.SetMaxOpenConns(1)
	return db
}

// TestStoreOfANewerCairnIsRefusedWithBothNumbers checks writers and readers.
func TestStoreOfANewerCairnIsRefusedWithBothNumbers(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worked()
	known := h.rows(`PRAGMA user_version`)[0]
	db := h.raw()
	h.sqlite(db, "UPDATE store_meta SET value = '4711' WHERE name = 'schema'", "PRAGMA user_version=4711")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	words := []string{"schema 4711", "knows " + known, "upgrade cairn"}
	h.untouched(func() {
		for event := range h.everyEvent() {
			h.fails(event, h.record(h.anyEvent(event)), 1, words...)
		}
		h.fails("search", h.run(h.command("search", "refund"), nil), 2, words...)
		h.fails("context", h.run(h.command("context"), nil), 2, words...)
		h.fails("import", h.run(h.command("import", h.repo), nil), 2, words...)
		h.refusesQuestions("4711")
	})
}

// TestLockedStoreIsGivenUpAfterTheWait runs cairn while another program holds the store's lock.
func TestLockedStoreIsGivenUpAfterTheWait(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.recorded(h.shell("t1", "make first"))
	db := h.raw()
	h.sqlite(db, "BEGIN EXCLUSIVE")
	const locked = "database is locked"

	hooks := []struct {
		name    string
		payload []byte
	}{
		{"PostToolUse", h.shell("t2", "make second")},
		{"SessionEnd", h.payload("SessionEnd", fields{"reason": "exit"})},
	}
	ended := make(chan string, len(hooks))
	var both sync.WaitGroup
	for _, hook := range hooks {
		cmd := h.command("record")
		both.Go(func() {
			e := h.run(cmd, hook.payload)
			h.fails(hook.name, e, 1, locked)
			t.Logf("%s gave up after %v", hook.name, e.took)
			if hook.name == "PostToolUse" && e.took < 4*time.Second {
				t.Error("it should wait 5 s")
			}
			ended <- hook.name
		})
	}
	both.Wait()
	if first := <-ended; first != "SessionEnd" {
		t.Errorf("%s gave up first; the end of a session waits 0.5 s, others 5 s", first)
	}
	if out := h.cairn("search", "first", "--ids"); out != "1\n" {
		t.Errorf("a reader finds %q", out)
	}

	h.sqlite(db, "ROLLBACK")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	h.recorded(h.shell("t2", "make second"))
	h.check()
	wantOnce(t, h.contents(), []string{"make first", "make second"})
	h.wantRows(`SELECT count(*) FROM observations`, "2")
}

// TestDataDirectoryIsFoundOrTheErrorSaysHow runs without a home directory and with settings of each
// kind.
func TestDataDirectoryIsFoundOrTheErrorSaysHow(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	payload := h.shell("t1", "make first")

	h.vars["CAIRN_HOME"] = filepath.Join("some", "folder")
	h.fails("relative", h.record(payload), 1, "CAIRN_HOME")
	h.fails("relative", h.run(h.command("search", "x"), nil), 2, "CAIRN_HOME")
	if left, err := os.ReadDir(h.repo); err != nil || len(left) != 1 {
		t.Errorf("left in the working directory: %v, %v", left, err)
	}

	h.vars["CAIRN_HOME"] = "~/notes"
	h.recorded(payload)
	if _, err := os.Stat(filepath.Join(h.dir, "notes", "cairn.db")); err != nil {
		t.Error(err)
	}

	h.vars["CAIRN_HOME"], h.vars["HOME"], h.vars["USERPROFILE"] = filepath.Join(h.dir, "more"), "", ""
	h.recorded(payload)
	h.wantRows(`SELECT content FROM observations`, "make first")
	h.wantModes()

	h.vars["CAIRN_HOME"], h.vars["CAIRN_DB"] = filepath.Join(h.dir, "data"), filepath.Join(h.dir, "deep", "er", "my.db")
	h.recorded(payload)
	for path, mode := range map[string]string{h.vars["CAIRN_DB"]: "-rw-------", filepath.Dir(h.vars["CAIRN_DB"]): "drwx------"} {
		info, err := os.Stat(path)
		if err != nil || runtime.GOOS != "windows" && info.Mode().String() != mode {
			t.Errorf("%s: %v, %v, want %s", path, info, err, mode)
		}
	}
}

// TestHookSurvivesItsPipes runs the hook with closed or unused pipes: its output has no reader, or
// its input no writer.
func TestHookSurvivesItsPipes(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()

	for event, want := range map[string]string{"SessionStart": "startup", "UserPromptSubmit": "hello again"} {
		cmd := h.command("record")
		cmd.Stdin = bytes.NewReader(h.payload(event, fields{"session_id": "s9", "source": "startup", "prompt": want}))
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = writer
		if err := reader.Close(); err != nil { // any output now breaks the pipe
			t.Fatal(err)
		}
		err = cmd.Run()
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code == 2 {
			t.Errorf("%s: exit 2 would be a veto", event)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		if n := len(h.rows(`SELECT id FROM observations WHERE session_id = 's9' AND content = ?`, want)); n != 1 {
			t.Errorf("%s is stored %d times", event, n)
		}
	}

	h.fails("no input", h.record(nil), 1, "invalid JSON at byte 0")
	cmd := h.command("record")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	payload := h.shell("t1", "make half")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(payload[:len(payload)/2]); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "invalid JSON at byte") {
		t.Errorf("half a payload: %v, %s", err, &said)
	}
	h.check()
}

// TestServerEndsWithItsClient covers each way in which clients disconnect.
func TestServerEndsWithItsClient(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.worked()
	for name, input := range map[string]string{
		"without a word": "",
		"in a message":   `{"jsonrpc":"2.0","id":1,"meth`,
		"after a question": `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25",` +
			`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"refund"}}}`,
	} {
		e := h.run(h.command("serve"), []byte(input))
		if e.code != 0 || e.stderr != "" {
			t.Errorf("left %s: exit %d, %s", name, e.code, e.stderr)
		}
		if name == "after a question" && !strings.Contains(e.stdout, `"id":1,"result"`) {
			t.Errorf("the last question was not answered: %s", e.stdout)
		}
	}

	// A crashed client closes both pipes, in either order.
	for _, closed := range []bool{true, false} {
		cmd := h.command("serve")
		var said gathered
		cmd.Stderr = &said
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = errors.Join(cmd.Start(), out.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil && !closed {
			t.Error(err)
		}
		if closed {
			if err := in.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := cmd.Wait(); err != nil || said.String() != "" {
			t.Errorf("with nobody to answer (input closed: %v): %v, %s", closed, err, &said)
		}
	}
}
