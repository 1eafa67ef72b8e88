package mcp_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mcp"
	"cairn/internal/store"
)

// ticking sets a clock that advances by a second at each call.
func ticking(config *cairn.Config) {
	var ticks atomic.Int64
	config.Clock = func() time.Time { return time.Unix(1_750_000_000+ticks.Add(1), 0) }
}

// with applies settings as the environment would.
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

// posting returns a server of mail without a store, which rejects invalid names.
func posting(t *testing.T) *mcp.Server {
	t.Helper()
	return mailServer(t, opened(t, ticking, with(map[string]string{"mail.name_mode": "strict", "mail.max_body_bytes": "2000"})))
}

// TestGoldensOfMailHoldEveryToolAndCode ensures that the scripts are complete. Each tool
// succeeds in them at least once, and each error code that a client can cause occurs.
// TestMailSaysWhatIsWrongWithTheStore covers the other codes.
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
		switch tool.Name {
		case "health_check", "force_release_file_reservation", "install_precommit_guard", "uninstall_precommit_guard": // see cmd/cairn
			continue
		}
		if !succeeded[tool.Name] {
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

// TestProfilesNarrowMail compares the profiles with mail §5.
func TestProfilesNarrowMail(t *testing.T) {
	t.Parallel()
	tools := mcp.MailTools(cairn.Mail{}, mcp.MailOptions{})
	for profile, want := range map[string]struct{ has, lacks string }{
		"full":      {"request_contact macro_start_session send_message", ""},
		"core":      {"health_check whois fetch_inbox file_reservation_paths macro_contact_handshake", "request_contact search_messages"},
		"messaging": {"health_check whois reply_message search_messages set_contact_policy", "file_reservation_paths macro_start_session"},
		"minimal":   {"health_check ensure_project register_agent send_message fetch_inbox acknowledge_message", "whois reply_message mark_message_read"},
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

// errorOfTool calls a tool that must fail, and returns its error.
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

// TestARefusedCallMakesNoStore calls writing tools that fail.
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

// TestAProtectedAgentNeedsItsTokenElsewhere runs a process that issued the token and a process
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
	var made agents.Registered
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
	for _, revision := range revisions() { // a keyring is only for the client on standard input
		got, err := call(t, connectHTTP(t, web, "", revision, nil), "fetch_inbox", json.RawMessage(inbox+`}`))
		if err != nil || !got.IsError {
			t.Errorf("over HTTP: %v, %q", err, texts(t, got))
		}
	}
}

// TestADefectIsAnErrorWithAWordOfItsOwn calls tools over a façade without a cairn.
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

// parameters lists the parameters of mail §5: the tool, its required parameters, its optional
// ones. A letter is the kind: integer, boolean, list of strings, numbers, else a string. The
// sign = separates a name from its alias.
const parameters = `
health_check: ;
ensure_project: human_key; identity_mode
register_agent: project_key program model; name task_description attachments_policy want_token/b session_id registration_token
create_agent_identity: project_key program model; name_hint task_description attachments_policy want_token/b session_id registration_token
whois: project_key agent_name; include_recent_commits/b commit_limit/i
list_agents: project_key; active_within_days/i include_retired/b program limit/i
retire_agent: project_key agent_name; reason registration_token
send_message: project_key sender_name to/l subject body_md; cc/l bcc/l attachment_paths/l importance ack_required/b thread_id topic broadcast/b auto_contact_if_blocked/b idempotency_key registration_token
reply_message: project_key message_id/i sender_name body_md; to/l cc/l bcc/l subject_prefix attachment_paths/l idempotency_key registration_token
fetch_inbox: project_key agent_name; limit/i unread_only/b urgent_only/b include_bodies/b since_ts=since topic registration_token
mark_message_read: project_key agent_name message_id/i; registration_token
acknowledge_message: project_key agent_name message_id/i; registration_token
search_messages: project_key query; limit/i offset/i ranking sender=from_agent sender=sender_name importance thread_id date_start=after date_start=since date_end=before date_end=until
summarize_thread: project_key thread_id; include_examples/b per_thread_limit/i
get_delivery_receipt: project_key message_id/i agent_name; registration_token
request_contact: project_key from_agent to_agent; to_project reason ttl_seconds/i register_if_missing/b program model task_description registration_token
respond_contact: project_key to_agent from_agent accept/b; ttl_seconds/i from_project registration_token
create_contact: project_key agent_name contact; contact_project ttl_seconds/i reason registration_token
list_contacts: project_key agent_name; direction
set_contact_policy: project_key agent_name policy; registration_token
file_reservation_paths: project_key agent_name paths/l; ttl_seconds/i exclusive/b advisory/b reason idempotency_key registration_token
check_file_reservation_conflicts: project_key paths/l; agent_name exclusive/b
release_file_reservations: project_key agent_name; paths/l file_reservation_ids/n registration_token
renew_file_reservations: project_key agent_name; paths/l file_reservation_ids/n extend_seconds/i until_ts idempotency_key registration_token
force_release_file_reservation: project_key agent_name file_reservation_id/i; notify_previous/b note registration_token
install_precommit_guard: project_key code_repo_path;
uninstall_precommit_guard: code_repo_path;
macro_start_session: human_key=project_key program model; task_description agent_name file_reservation_paths/l file_reservation_reason file_reservation_ttl_seconds/i inbox_limit/i session_id registration_token
macro_prepare_thread: project_key thread_id program model; agent_name task_description register_if_missing/b include_examples/b inbox_limit/i include_inbox_bodies/b registration_token
macro_file_reservation_cycle: project_key agent_name paths/l; ttl_seconds/i exclusive/b reason auto_release/b registration_token
macro_contact_handshake: project_key requester=agent_name target=to_agent; reason ttl_seconds/i auto_accept/b welcome_subject welcome_body thread_id to_project register_if_missing/b program model task_description registration_token
`

// TestEveryParameterOfMailIsTakenUnderItsName gives each parameter a value that is invalid for
// every kind, which must be a TYPE_ERROR. If a required parameter is omitted, the error must
// be MISSING_FIELD.
func TestEveryParameterOfMailIsTakenUnderItsName(t *testing.T) {
	t.Parallel()
	session := connect(t, mailServer(t, opened(t)), "", nil)
	refusal := func(tool string, args map[string]any) string {
		t.Helper()
		result, err := call(t, session, tool, args)
		if err != nil || !result.IsError {
			t.Fatalf("%s %v: %v, %+v", tool, args, err, result)
		}
		var e fault.Envelope
		if err := json.Unmarshal([]byte(texts(t, result)[0]), &e); err != nil {
			t.Fatal(err)
		}
		field, _ := e.Error.Details["field"].(string)
		return e.Error.Code + " " + field
	}
	values := map[string]any{"": "x", "i": 1, "b": true, "l": []string{"x"}, "n": []int{1}}
	seen := 0
	for line := range strings.Lines(strings.TrimSpace(parameters)) {
		tool, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		needed, optional, _ := strings.Cut(rest, ";")
		whole := map[string]any{}
		for _, p := range strings.Fields(needed) {
			name, kind, _ := strings.Cut(p, "/")
			name, _, _ = strings.Cut(name, "=")
			whole[name] = values[kind]
		}
		for _, p := range strings.Fields(needed + optional) {
			name, _, _ := strings.Cut(p, "/")
			name, alias, _ := strings.Cut(name, "=")
			for _, given := range []string{name, alias} {
				if given == "" {
					continue
				}
				args := maps.Clone(whole)
				delete(args, name)
				if _, must := whole[name]; must {
					if got := refusal(tool, args); got != mail.CodeMissing+" "+name {
						t.Errorf("%s without %s: %s", tool, name, got)
					}
				}
				args[given] = map[string]int{"never": 1}
				if got := refusal(tool, args); got != mail.CodeType+" "+name {
					t.Errorf("%s with a wrong %s: %s", tool, given, got)
				}
			}
		}
		seen++
	}
	if n := len(mcp.MailTools(cairn.Mail{}, mcp.MailOptions{})); n != seen {
		t.Errorf("%d tools, %d of them looked at", n, seen)
	}
}
