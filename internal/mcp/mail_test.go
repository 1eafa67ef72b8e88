package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mcp"
	"cairn/internal/store"
)

// ticking makes a clock that moves on by a second each time it is asked.
func ticking(config *cairn.Config) {
	var ticks atomic.Int64
	config.Clock = func() time.Time { return time.Unix(1_750_000_000+ticks.Add(1), 0) }
}

// with gives a cairn settings as the environment would.
func with(settings map[string]string) func(*cairn.Config) {
	return func(config *cairn.Config) {
		config.Setting = func(key string) string { return settings[key] }
	}
}

func mailServer(t *testing.T, c *cairn.Cairn) *mcp.Server {
	t.Helper()
	o := mcp.MailOptions{Keyring: &mail.Keyring{}}
	return newServer(t, mcp.Config{Tools: mcp.MailTools(c.Mail(), o), Resources: mcp.MailResources(c.Mail(), o)})
}

// posting is a server of mail over no store yet, which refuses names that are none.
func posting(t *testing.T) *mcp.Server {
	t.Helper()
	return mailServer(t, opened(t, ticking, with(map[string]string{"mail.name_mode": "strict", "mail.max_body_bytes": "2000"})))
}

// TestGoldensOfMailHoldEveryToolAndCode keeps the scripts complete: each tool
// succeeds in them at least once, and each code that a client can bring about is
// there. The others are those of TestMailSaysWhatIsWrongWithTheStore.
func TestGoldensOfMailHoldEveryToolAndCode(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join("testdata", "mail", "*.jsonl"))
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	succeeded, codes := map[string]bool{}, map[string]bool{}
	for _, script := range scripts {
		data, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		tool := ""
		for line := range strings.Lines(string(data)) {
			var m struct {
				Params struct{ Name string }
				Result struct {
					IsError           bool
					Content           []json.RawMessage
					StructuredContent fault.Envelope
				}
			}
			text, sent := strings.CutPrefix(line, "> ")
			if !sent {
				text = strings.TrimPrefix(line, "< ")
			}
			if strings.HasPrefix(line, "#") {
				continue
			}
			_ = json.Unmarshal([]byte(text), &m) // a list is not of this shape
			switch {
			case sent:
				tool = m.Params.Name
			case m.Result.IsError:
				codes[m.Result.StructuredContent.Error.Code] = true
			case len(m.Result.Content) > 0:
				succeeded[tool] = true
			}
		}
	}
	for _, tool := range mcp.MailTools(cairn.Mail{}, mcp.MailOptions{}) {
		if !succeeded[tool.Name] && tool.Name != "force_release_file_reservation" {
			t.Errorf("%s never succeeds", tool.Name)
		}
	}
	for _, code := range []string{
		mail.CodeConfiguration, mail.CodeInvalid, mail.CodeMissing, mail.CodeType, mail.CodeLimit, mail.CodeTimestamp, mail.CodeThreadID, mail.CodeTopic,
		mail.CodeEmptyProgram, mail.CodeEmptyModel, mail.CodeEmptyPaths, mail.CodePath, mail.CodeAgentName, mail.CodeProgramName, mail.CodeModelName,
		mail.CodeEmail, mail.CodeBroadcast, mail.CodeDescriptive, mail.CodeUserName, mail.CodeNotFound, mail.CodeRecipient, mail.CodeContactRequired,
		mail.CodeContactBlocked, mail.CodeReserved, mail.CodeDenied, mail.CodeIdempotency, mail.CodeTooLarge,
	} {
		if !codes[code] {
			t.Errorf("no golden shows %s", code)
		}
	}
}

func TestMailCostsLittle(t *testing.T) {
	t.Parallel()
	tools := mcp.MailTools(cairn.Mail{}, mcp.MailOptions{})
	n, err := mcp.Tokens(tools)
	if err != nil || n > 2000 {
		t.Errorf("%d tools, %d tokens, %v", len(tools), n, err)
	}
	all := append(append(mcp.ObservationTools(mcp.Observations{}), mcp.RecordTools(cairn.Records{}, "")...), tools...)
	if n, err = mcp.Tokens(all); err != nil || n > 4800 { // of 6,000, for memories come too
		t.Errorf("all: %d tokens, %v", n, err)
	}
	if lean := mcp.Lean(tools); len(lean) > 0 {
		t.Errorf("the lean surface has tools of mail: %d", len(lean))
	}
}

// TestProfilesNarrowMail knows them from mail §5.
func TestProfilesNarrowMail(t *testing.T) {
	t.Parallel()
	tools := mcp.MailTools(cairn.Mail{}, mcp.MailOptions{})
	for profile, want := range map[string]struct{ has, lacks string }{
		"full":      {"request_contact macro_start_session send_message", ""},
		"core":      {"whois fetch_inbox file_reservation_paths macro_contact_handshake", "request_contact search_messages"},
		"messaging": {"whois reply_message search_messages set_contact_policy", "file_reservation_paths macro_start_session"},
		"minimal":   {"ensure_project register_agent send_message fetch_inbox acknowledge_message", "whois reply_message mark_message_read"},
	} {
		names := map[string]bool{}
		for _, tool := range mcp.MailProfile(tools, profile) {
			names[tool.Name] = true
		}
		for _, name := range strings.Fields(want.has) {
			if !names[name] {
				t.Errorf("%s lacks %s", profile, name)
			}
		}
		for _, name := range strings.Fields(want.lacks) {
			if names[name] {
				t.Errorf("%s has %s", profile, name)
			}
		}
	}
}

// errorOfTool calls a tool that must be refused.
func errorOfTool(t *testing.T, s *mcp.Server, tool, args string) fault.Envelope {
	t.Helper()
	result, err := call(t, connect(t, s, "", nil), tool, json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	var e fault.Envelope
	if err := json.Unmarshal([]byte(texts(t, result)[0]), &e); err != nil || !result.IsError {
		t.Fatalf("%s: %v, %q", tool, err, texts(t, result))
	}
	if _, ok := e.Error.Details["recoverable"].(bool); !ok {
		t.Errorf("%s: no recoverable in %v", e.Error.Code, e.Error.Details)
	}
	return e
}

const registerBlueLake = `{"project_key":"/srv/ledger","program":"codex","model":"m1","name":"BlueLake"}`

func TestMailSaysWhatIsWrongWithTheStore(t *testing.T) {
	t.Parallel()
	damaged := opened(t)
	if err := os.MkdirAll(filepath.Dir(damaged.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged.Path(), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	e := errorOfTool(t, mailServer(t, damaged), "register_agent", registerBlueLake)
	if e.Error.Code != mail.CodeCorruption || e.Error.Details["recoverable"] != false || e.Error.Details["corruption_details"] == nil {
		t.Errorf("damaged: %+v", e)
	}

	late := opened(t, with(map[string]string{"mail.call_timeout": "1ns"}))
	e = errorOfTool(t, mailServer(t, late), "list_agents", `{"project_key":"/srv/ledger"}`)
	if e.Error.Code != mail.CodeBusy || e.Error.Message != "Resource is temporarily busy." || e.Error.Details["recoverable"] != true {
		t.Errorf("late: %+v", e)
	}
	if _, err := os.Stat(late.Path()); err == nil {
		t.Error("a call that was too late made a store")
	}
}

// TestARefusedCallMakesNoStore goes through writing tools that fail.
func TestARefusedCallMakesNoStore(t *testing.T) {
	t.Parallel()
	c := opened(t)
	s := mailServer(t, c)
	for tool, args := range map[string]string{
		"register_agent":                   `{"project_key":"/srv/ledger","program":"","model":"m1"}`,
		"send_message":                     `{"project_key":"/srv/ledger","sender_name":"BlueLake","to":"RedFox","subject":"s","body_md":"b"}`,
		"file_reservation_paths":           `{"project_key":"/srv/ledger","agent_name":"BlueLake","paths":["a"]}`,
		"mark_message_read":                `{"project_key":"/srv/ledger","agent_name":"BlueLake","message_id":1}`,
		"macro_contact_handshake":          `{"project_key":"/srv/ledger","requester":"BlueLake","target":"RedFox"}`,
		"release_file_reservations":        `{"project_key":"/srv/ledger","agent_name":"BlueLake"}`,
		"fetch_inbox":                      `{"project_key":"/srv/ledger","agent_name":"BlueLake"}`,
		"check_file_reservation_conflicts": `{"project_key":"/srv/ledger","paths":["a"]}`,
	} {
		if e := errorOfTool(t, s, tool, args); e.Error.Message == "" || e.Error.Hint == "" {
			t.Errorf("%s: %+v", tool, e)
		}
	}
	if _, err := os.Stat(c.Path()); err == nil {
		t.Error("a refused call made a store")
	}
	if _, err := call(t, connect(t, s, "", nil), "register_agent", json.RawMessage(registerBlueLake)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Path()); err != nil {
		t.Error(err)
	}
}

// TestAProtectedAgentNeedsItsTokenElsewhere has one process that issued it and one
// that has not seen it.
func TestAProtectedAgentNeedsItsTokenElsewhere(t *testing.T) {
	t.Parallel()
	c := opened(t)
	here, there := mailServer(t, c), mailServer(t, c)
	result, err := call(t, connect(t, here, "", nil), "register_agent",
		json.RawMessage(`{"project_key":"/srv/ledger","program":"codex","model":"m1","name":"BlueLake","want_token":"true"}`))
	if err != nil {
		t.Fatal(err)
	}
	var made mail.Registered
	if err := json.Unmarshal([]byte(texts(t, result)[0]), &made); err != nil || len(made.Token) < 40 {
		t.Fatalf("%v, %+v", err, texts(t, result))
	}
	const inbox = `{"project_key":"/srv/ledger","agent_name":"BlueLake"`
	if got, err := call(t, connect(t, here, "", nil), "fetch_inbox", json.RawMessage(inbox+`}`)); err != nil || got.IsError {
		t.Errorf("where it was issued: %v, %q", err, texts(t, got))
	}
	if e := errorOfTool(t, there, "fetch_inbox", inbox+`}`); e.Error.Code != mail.CodeDenied {
		t.Errorf("without it: %+v", e)
	}
	if e := errorOfTool(t, there, "fetch_inbox", inbox+`,"registration_token":"guessed"}`); e.Error.Code != mail.CodeDenied {
		t.Errorf("with another: %+v", e)
	}
	if got, err := call(t, connect(t, there, "", nil), "fetch_inbox", json.RawMessage(inbox+`,"registration_token":"`+made.Token+`"}`)); err != nil || got.IsError {
		t.Errorf("with it: %v, %q", err, texts(t, got))
	}
	if got, err := call(t, connect(t, there, "", nil), "fetch_inbox", json.RawMessage(inbox+`}`)); err != nil || got.IsError {
		t.Errorf("where it was shown: %v, %q", err, texts(t, got))
	}
	web := serveHTTP(t, here, mcp.HTTPOptions{})
	for _, revision := range revisions() { // a keyring is for the client of standard input alone
		got, err := call(t, connectHTTP(t, web, "", revision, nil), "fetch_inbox", json.RawMessage(inbox+`}`))
		if err != nil || !got.IsError {
			t.Errorf("over HTTP: %v, %q", err, texts(t, got))
		}
	}
}

// TestADefectIsAnErrorWithAWordOfItsOwn calls over a façade without a cairn.
func TestADefectIsAnErrorWithAWordOfItsOwn(t *testing.T) {
	t.Parallel()
	log := &journal{}
	s := newServer(t, mcp.Config{Tools: mcp.MailTools(cairn.Mail{}, mcp.MailOptions{Log: log.logger()})})
	e := errorOfTool(t, s, "list_agents", `{"project_key":"/srv/ledger"}`)
	word, ok := strings.CutPrefix(e.Error.Message, "Unexpected error (")
	if word = strings.TrimSuffix(word, ")"); !ok || e.Error.Code != mail.CodeUnhandled || e.Error.Details["recoverable"] != false {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(log.String(), word) {
		t.Errorf("%q is not in the log", word)
	}
}

func TestEveryStoreErrorOfOpeningHasACodeOfMail(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		store.CodeBusy: mail.CodeBusy, store.CodeFull: mail.CodeDiskFull, store.CodeReadOnly: mail.CodeDatabase, store.CodeNewer: mail.CodeDatabase,
		store.CodeCorrupt: mail.CodeCorruption,
	} {
		if got := fault.As(mail.Fault(fault.New(fault.Unavailable, code, "m"))); got.Code != want || got.Details["recoverable"] == nil {
			t.Errorf("%s: %s, %v", code, got.Code, got.Details)
		}
	}
	if mail.Fault(nil) != nil {
		t.Error("nil is an error")
	}
}
