package main

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	cairnhook "cairn/internal/hook"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
	"cairn/internal/veto"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cairn": main, "cairn-hook": hookMain, "measured": measured, "agenthost": agentHost})
}

// hookMain is the main function of the program cairn-hook.
func hookMain() {
	veto.Prevent()
	os.Exit(cairnhook.Run(cairnhook.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}, os.Args[0], version, os.Args[1:]))
}

// TestScripts runs the whole program from outside. Each script has an empty home.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Values[scriptHub{}] = &runningHub{listen: "127.0.0.1:0"}
			e.Setenv("HOME", home)
			e.Setenv("USERPROFILE", home)
			e.Setenv("DB", filepath.Join(home, ".cairn", "cairn.db"))
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every process with the race detector ends a second late
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"hook":     hook,
			"until":    until,
			"sql":      query,
			"payload":  payload,
			"change":   change,
			"filler":   filler,
			"fill":     fill,
			"wired":    wired,
			"newkey":   newKey,
			"nowhere":  nowhere,
			"keep":     keep,
			"ids":      ids,
			"thehub":   theHub,
			"nogit":    noGit,
			"oldstore": oldStore,
			"office":   office,

			"reserved":   reserved,
			"reservedin": reservedIn,
			"registered": registered,
			"bound":      bound,
			"freed":      freed,
			"nul":        nul,
		},
		Condition: func(name string) (bool, error) {
			if name != "csqlite" { // SQLite in C opens only plain stores
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return store.Driver == "mattn/go-sqlite3", nil
		},
	})
}

// hook sends one payload to cairn-hook: hook EVENT key=value... Values are JSON; a value
// that is not valid JSON is text. The default session is s1, the default cwd $WORK/repo.
// exit=N expects that exit code instead of 0. from=H passes --from H. - drops a field.
// --assist is passed to cairn-hook.
func hook(ts *testscript.TestScript, _ bool, args []string) {
	fields := map[string]string{
		"hook_event_name": quote(args[0]), "session_id": `"s1"`, "cwd": quote(ts.MkAbs("repo")),
	}
	want, options := "0", []string{"--from", "auto"}
	for _, a := range args[1:] {
		k, v, ok := strings.Cut(a, "=")
		switch {
		case strings.HasPrefix(a, "--"):
			options = append(options, a)
		case !ok:
			ts.Fatalf("hook: %q is not key=value", a)
		case k == "exit":
			want = v
		case k == "from":
			options[1] = v
		case v == "-":
			delete(fields, k)
		case looksLikeJSON(v):
			fields[k] = v
		default:
			fields[k] = quote(v)
		}
	}
	var parts []string
	for k, v := range fields {
		parts = append(parts, quote(k)+":"+v)
	}
	send(ts, "{"+strings.Join(parts, ",")+"}", want, options...)
}

// until repeats a hook until a query returns a value: until QUERY VALUE hook EVENT
// key=value... A hook that runs out of time leaves the rest of its work to the next hook.
func until(ts *testscript.TestScript, neg bool, args []string) {
	db := storetest.OpenFile(ts.Getenv("DB"), "mode=ro")
	defer db.Close()
	for range 500 {
		hook(ts, neg, args[3:])
		var found string
		ts.Check(db.QueryRow(args[0]).Scan(&found))
		if found == args[1] {
			return
		}
	}
	ts.Fatalf("until: %s never is %s", args[0], args[1])
}

// payload sends the bytes of a file to cairn record: payload FILE [exit].
func payload(ts *testscript.TestScript, _ bool, args []string) {
	want := "0"
	if len(args) > 1 {
		want = args[1]
	}
	send(ts, ts.ReadFile(args[0]), want)
}

func send(ts *testscript.TestScript, payload, want string, options ...string) {
	cmd := exec.Command(program(ts, "cairn-hook"), append([]string{"record"}, options...)...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "USERPROFILE", "PATH", "CAIRN_HOME", "CAIRN_DB", "CAIRN_DISABLE", "CAIRN_KEY", "GORACE",
		"CAIRN_AGENT", "CAIRN_GUARD_MODE", "CAIRN_GUARD_STRICT", "CAIRN_GUARD_AUTO_RESERVE"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(payload), ts.Stdout(), ts.Stderr()
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		ts.Fatalf("hook: %v", err)
	}
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != want {
		ts.Fatalf("hook: exit %s, want %s", got, want)
	}
}

// program finds a program on the script's PATH.
func program(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		for _, suffix := range []string{"", ".exe"} {
			if p := filepath.Join(dir, name+suffix); fileExists(p) {
				return p
			}
		}
	}
	ts.Fatalf("%s is not on the PATH", name)
	return ""
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

func looksLikeJSON(v string) bool {
	return v != "" && strings.ContainsRune(`{["0123456789-`, rune(v[0])) || v == "true" || v == "false" || v == "null"
}

// change runs a statement on the store that cairn would not run: change STATEMENT.
func change(ts *testscript.TestScript, _ bool, args []string) {
	db := storetest.OpenFile(ts.Getenv("DB"), "")
	_, err := db.Exec(strings.Join(args, " "))
	ts.Check(errors.Join(err, db.Close()))
}

// filler writes a transcript of PROMPTS prompts in $WORK/repo that share no rare words with
// other texts: filler FILE PROMPTS.
func filler(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"type":"user","uuid":"filler-%d","sessionId":"filler","timestamp":"2026-01-02T03:%02d:%02dZ","cwd":%s,`+
			`"message":{"role":"user","content":"tidy the ledger, page %d"}}`+"\n", i, i/60, i%60, quote(ts.MkAbs("repo")), i)
	}
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[0])), 0o755))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}

// fill inserts values into files that are only known when a script runs: fill FILE...
// @WORK@ becomes the work directory in its current form in a JSON string. @NAME@ becomes
// that variable. @N@ becomes the time N seconds after the newest observation, or after now
// if there is no observation.
func fill(ts *testscript.TestScript, _ bool, args []string) {
	base := time.Now().Unix()
	db := storetest.OpenFile(ts.Getenv("DB"), "mode=ro")
	var newest sql.NullInt64
	if db.QueryRow("SELECT max(timestamp) FROM observations").Scan(&newest) == nil && newest.Valid {
		base = newest.Int64
	}
	ts.Check(db.Close())
	dated, named := regexp.MustCompile(`@-?[0-9]+@`), regexp.MustCompile(`@[A-Z_]+@`)
	for _, name := range args {
		text := strings.ReplaceAll(ts.ReadFile(name), "@WORK@", strings.Trim(quote(ts.MkAbs(".")), `"`))
		text = named.ReplaceAllStringFunc(text, func(m string) string { return ts.Getenv(strings.Trim(m, "@")) })
		text = dated.ReplaceAllStringFunc(text, func(m string) string {
			seconds, err := strconv.ParseInt(strings.Trim(m, "@"), 10, 64)
			ts.Check(err)
			return time.Unix(base+seconds, 0).UTC().Format(time.RFC3339)
		})
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// query prints the rows of an SQL query over the store, columns separated by |.
func query(ts *testscript.TestScript, _ bool, args []string) {
	db := storetest.OpenFile(ts.Getenv("DB"), "mode=ro")
	defer db.Close()
	rows, err := db.Query(strings.Join(args, " "))
	ts.Check(err)
	defer rows.Close()
	cols, err := rows.Columns()
	ts.Check(err)
	for rows.Next() {
		vals := make([]any, len(cols))
		for i := range vals {
			vals[i] = new(sql.NullString)
		}
		ts.Check(rows.Scan(vals...))
		var out []string
		for _, v := range vals {
			out = append(out, v.(*sql.NullString).String)
		}
		fmt.Fprintln(ts.Stdout(), strings.Join(out, "|"))
	}
	ts.Check(rows.Err())
}

// oldStore writes a store of the cairn before migration 9 to the store's path. In it
// /srv/work has clones of https://example.org/acme/tool.git at one/tool and two/tool, and a
// clone of https://example.org/other/tool.git at x/tool. It also has a repository without a
// remote at lone, and the directory plain/notes. Each has a session with a prompt that
// contains zebra. one/tool has a record, a memory, and the agent BlueLake, who holds a.go.
// two/tool has two records. x/tool has a record, a memory and the agent RedFox.
func oldStore(ts *testscript.TestScript, _ bool, _ []string) {
	packed, err := os.ReadFile(filepath.Join("testdata", "store8.db.gz"))
	ts.Check(err)
	r, err := gzip.NewReader(bytes.NewReader(packed))
	ts.Check(err)
	data, err := io.ReadAll(r)
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(ts.Getenv("DB")), 0o700))
	ts.Check(os.WriteFile(ts.Getenv("DB"), data, 0o600))
}

// newKey sets variables to new keys, as hex digits: newkey NAME...
func newKey(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		key := make([]byte, 32)
		_, err := rand.Read(key)
		ts.Check(err)
		ts.Setenv(name, hex.EncodeToString(key))
	}
}

// keep sets a variable to the output of the last command: keep NAME.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// ids sets a variable to the first value of a member in the JSON output of the last
// command: ids NAME MEMBER.
func ids(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(`"` + args[1] + `": ?"([^"]*)"`).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("ids: there is no %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// noGit sets a PATH that contains only cairn.
func noGit(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Setenv("PATH", filepath.Dir(program(ts, "cairn")))
}

// nowhere fails if a file in a directory contains a text: nowhere FOLDER TEXT.
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	found := ""
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(ts.MkAbs(args[0]), e.Name()))
		ts.Check(err)
		if strings.Contains(string(text), args[1]) {
			found = e.Name()
		}
	}
	if neg == (found == "") {
		ts.Fatalf("nowhere: %q in %q", args[1], found)
	}
}
