package service

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/documents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/project"
	"cairn/internal/store"
)

const shared = "/nowhere/shared"

func args(name string) agents.RegisterArgs {
	return agents.RegisterArgs{ProjectKey: shared, Program: "claude-code", Model: "m1", Name: name}
}

func TestRegisteringAgainBringsTheSameAgentUpToDate(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	first := y.register(shared, "green-lake")
	mailtest.WantFields(t, "register_agent", first, "id", "name", "program", "model", "task_description", "inception_ts", "last_active_ts", "project_id", "attachments_policy")
	mailtest.Want(t, "name", first.Name, "GreenLake")
	mailtest.Want(t, "policy", first.AttachmentsPolicy, "auto")
	mailtest.Want(t, "last active", first.LastActive, first.Inception)
	a := args("GREENLAKE")
	a.Program, a.Model, a.TaskDescription, a.AttachmentsPolicy = " codex\n", "m2", "line one\nline two", "file"
	again := mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{}, a))(t)
	active := again.LastActive
	again.LastActive = first.LastActive
	mailtest.Want(t, "again", again.AgentInfo, agents.AgentInfo{
		ID: first.ID, Name: "GreenLake", Program: "codex", Model: "m2", TaskDescription: "line one\nline two", Inception: first.Inception, LastActive: first.LastActive, ProjectID: first.ProjectID, AttachmentsPolicy: "file",
	})
	if active <= first.LastActive {
		t.Errorf("last active %s, before %s", active, first.LastActive)
	}
	before := y.changes()
	same := mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{}, a))(t)
	mailtest.Want(t, "changes by saying the same", y.changes(), before)
	if same.LastActive <= active {
		t.Errorf("last active %s, before %s", same.LastActive, active)
	}
	y.rebuilt()
}

func TestRegisteringRefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	for what, c := range map[string]struct {
		change func(*agents.RegisterArgs)
		code   string
		text   string
	}{
		"program":     {func(a *agents.RegisterArgs) { a.Program = " \n" }, mail.CodeEmptyProgram, "program cannot be empty"},
		"model":       {func(a *agents.RegisterArgs) { a.Model = "" }, mail.CodeEmptyModel, "model cannot be empty"},
		"policy":      {func(a *agents.RegisterArgs) { a.AttachmentsPolicy = "inlined" }, mail.CodeInvalid, `"field":"attachments_policy"`},
		"task":        {func(a *agents.RegisterArgs) { a.TaskDescription = strings.Repeat("x", 64<<10+1) }, mail.CodeInvalid, `"field":"task_description"`},
		"NUL":         {func(a *agents.RegisterArgs) { a.Name = "Green\x00Lake" }, mail.CodeInvalid, `"field":"name"`},
		"text":        {func(a *agents.RegisterArgs) { a.TaskDescription = "\xc3" }, mail.CodeInvalid, `"field":"task_description"`},
		"broken word": {func(a *agents.RegisterArgs) { a.Program = "\xed\xa0\x80" }, mail.CodeInvalid, `"field":"program"`},
		"placeholder": {func(a *agents.RegisterArgs) { a.Name = "YOUR_AGENT" }, mail.CodeConfiguration, `"provided":"YOUR_AGENT"`},
		"example":     {func(a *agents.RegisterArgs) { a.Name = "<AGENT>" }, mail.CodeConfiguration, `"field":"name"`},
		"person":      {func(a *agents.RegisterArgs) { a.Name = "humanOverseer" }, mail.CodeAgentName, "reserved"},
		"a person":    {func(a *agents.RegisterArgs) { a.Name = "Human Overseer" }, mail.CodeAgentName, "reserved"},
		"project":     {func(a *agents.RegisterArgs) { a.ProjectKey = "$PROJECT" }, mail.CodeConfiguration, `"field":"project_key"`},
	} {
		a := args("")
		c.change(&a)
		_, err := y.RegisterAgent(t.Context(), mail.Caller{}, a)
		wantError(t, what, err, c.code, c.text)
	}
	full := y.with(mail.Config{DiskLevel: func() mail.DiskLevel { return mail.DiskFatal }})
	_, err := full.RegisterAgent(t.Context(), mail.Caller{}, args(""))
	wantError(t, "a full disk", err, mail.CodeDiskFull, `"recoverable":true`)
	mailtest.Want(t, "changes", y.changes(), 0)
	for _, room := range []mail.DiskLevel{mail.DiskOK, mail.DiskWarning, mail.DiskCritical} {
		mailtest.Must(y.with(mail.Config{DiskLevel: func() mail.DiskLevel { return room }}).RegisterAgent(t.Context(), mail.Caller{}, args("")))(t)
	}
}

func TestTheNameModeDecidesWhatBecomesOfAName(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	strict, auto := y.with(mail.Config{NameMode: mail.Strict}), y.with(mail.Config{NameMode: mail.AlwaysAuto})
	for name, code := range map[string]string{
		"claude": mail.CodeProgramName, "gpt-5": mail.CodeModelName, "ann@b.example": mail.CodeEmail, "@all": mail.CodeBroadcast, "BuildBot": mail.CodeDescriptive,
		"root": mail.CodeUserName, "Nobody": mail.CodeAgentName, strings.Repeat("x", 129): mail.CodeAgentName,
	} {
		_, err := strict.RegisterAgent(t.Context(), mail.Caller{}, args(name))
		wantError(t, name, err, code, `"field":"name"`)
		_, err = strict.CreateAgent(t.Context(), mail.Caller{}, args(name))
		wantError(t, name, err, code, `"field":"name_hint"`)
		for _, o := range []*yard{y, auto} {
			made := mailtest.Must(o.RegisterAgent(t.Context(), mail.Caller{}, args(name)))(t)
			if pair, ok := mail.WholeName(made.Name); !ok || pair != made.Name {
				t.Errorf("%s became %s", name, made.Name)
			}
		}
	}
	mailtest.Want(t, "a valid name in strict", mailtest.Must(strict.RegisterAgent(t.Context(), mail.Caller{}, args("misty owl")))(t).Name, "MistyOwl")
	made := mailtest.Must(auto.CreateAgent(t.Context(), mail.Caller{}, args("MistyOwl")))(t)
	if made.Name == "MistyOwl" {
		t.Error("always_auto took the name")
	}
	mailtest.Must(auto.RegisterAgent(t.Context(), mail.Caller{}, args("YOUR_AGENT")))(t)
	// A registered name is kept in every mode except always_auto, even if it is not a valid name.
	y.restore(&mail.Agent{Name: "worker7", Program: "p", Model: "m", Inception: 1000, AttachmentsPolicy: "auto", ContactPolicy: "auto"})
	for _, o := range []*yard{y, strict} {
		mailtest.Want(t, "a registered name", mailtest.Must(o.RegisterAgent(t.Context(), mail.Caller{}, args("WORKER7")))(t).Name, "worker7")
	}
	y.rebuilt()
}

// restore applies an agent from another store to the shared project.
func (y *yard) restore(a *mail.Agent) {
	y.Helper()
	a.ProjectUID = y.ensure(shared).UID
	err := y.Store.Write(y.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := documents.Apply(ctx, tx, mail.Actor{}, mail.Archive{}, a, false)
		return err
	})
	if err != nil {
		y.Fatal(err)
	}
}

func TestCreatingRefusesANameThatIsTaken(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	mailtest.Must(y.CreateAgent(t.Context(), mail.Caller{}, args("GreenLake")))(t)
	mailtest.Must(y.RetireAgent(t.Context(), mail.Caller{}, agents.RetireArgs{ProjectKey: shared, AgentName: "GreenLake"}))(t)
	before := y.changes()
	for _, name := range []string{"GreenLake", "green lake"} {
		_, err := y.CreateAgent(t.Context(), mail.Caller{}, args(name))
		wantError(t, name, err, mail.CodeInvalid, "already exists in this project", `"field":"name_hint"`, `"tool":"register_agent"`, `"name":"GreenLake"`)
	}
	mailtest.Want(t, "changes", y.changes(), before)
	if made := mailtest.Must(y.CreateAgent(t.Context(), mail.Caller{}, args("not a name")))(t); made.ID != 2 {
		t.Errorf("a clash was drawn: %+v", made)
	}
	other := args("GreenLake")
	other.ProjectKey = "/nowhere/else"
	mailtest.Must(y.CreateAgent(t.Context(), mail.Caller{}, other))(t)
}

func TestRegisteringKeepsSecretsOut(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	secret := "ghp_" + strings.Repeat("aB3x", 9)
	a := args("GreenLake")
	a.TaskDescription, a.Program = "use "+secret, "tool "+secret
	got := mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{}, a))(t)
	if strings.Contains(got.TaskDescription+got.Program, secret) {
		t.Errorf("stored: %+v", got)
	}
	a.Program = "a\x1b[31mb\r\nc\u2028d" + strings.Repeat("é", 300)
	got = mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{}, a))(t)
	mailtest.Want(t, "program", got.Program, "a [31mb  c d"+strings.Repeat("é", 200-12))
}

func TestAnAgentsBranchAndWorktreeFollowWhereItRegisters(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	main := y.repo("app")
	side := y.path("trees", "side")
	y.git(main, "worktree", "add", "-q", "-b", "feature", side)
	p := y.ensure(main)
	where := func(c mail.Caller, key, branch, worktree string) {
		t.Helper()
		a := agents.RegisterArgs{ProjectKey: key, Program: "p", Model: "m", Name: "GreenLake"}
		mailtest.Must(y.RegisterAgent(t.Context(), c, a))(t)
		listed := mailtest.Must(y.ListAgents(t.Context(), c, agents.ListAgentsArgs{ProjectKey: p.Slug}))(t)[0]
		got := func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		}
		mailtest.Want(t, "branch", got(listed.Branch), branch)
		mailtest.Want(t, "worktree", got(listed.Worktree), worktree)
	}
	where(mail.Caller{}, p.Slug, "", "")
	where(mail.Caller{}, side, "feature", "side")
	where(mail.Caller{}, p.Slug, "feature", "side") // no place given, nothing changes
	where(mail.Caller{}, main, "main", "")
	where(y.at(side), main, "feature", "side") // the working directory takes precedence
	where(y.at(main), side, "feature", "side") // even over a named worktree
	where(y.at(y.mkdir(filepath.Join(main, "x"))), p.Slug, "main", "")
	where(y.at(y.mkdir(y.path("elsewhere"))), p.Slug, "main", "")
	where(y.at(y.repo("other")), side, "feature", "side")
	y.rebuilt()
}

func TestTokensProtectAgents(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	ask := args("GreenLake")
	ask.WantToken = true
	made := mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{}, ask))(t)
	mailtest.WantFields(t, "register_agent", made, "id", "name", "program", "model", "task_description", "inception_ts", "last_active_ts", "project_id",
		"attachments_policy", "registration_token")
	if len(made.Token) != 43 || strings.Trim(made.Token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("the token has %d characters", len(made.Token))
	}
	var stored string
	y.query(&stored, "SELECT token_sha256 FROM mail_agents")
	mailtest.Want(t, "what is stored", stored, fmt.Sprintf("%x", sha256.Sum256([]byte(made.Token))))
	var found int
	y.query(&found, "SELECT count(*) FROM changes WHERE instr(doc, ?)", made.Token)
	mailtest.Want(t, "changes with the token", found, 0)

	act := func(o *yard, c mail.Caller) error {
		_, err := o.RegisterAgent(t.Context(), c, ask)
		return err
	}
	other := mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{}, agents.RegisterArgs{ProjectKey: shared, Program: "p", Model: "m", Name: "BlueDog", WantToken: true}))(t)
	for what, c := range map[string]mail.Caller{
		"no token":        {},
		"another token":   {Token: other.Token},
		"half of it":      {Token: made.Token[:20]},
		"its hash":        {Token: stored},
		"in vain":         {Token: "x", HeaderToken: made.Token},
		"an empty ring":   {Keyring: &mail.Keyring{}},
		"a wrong session": {Session: made.Token},
	} {
		wantError(t, what, act(y, c), mail.CodeDenied, "GreenLake")
	}
	ring := &mail.Keyring{}
	for what, c := range map[string]mail.Caller{
		"the token":  {Token: made.Token, Keyring: ring},
		"the header": {HeaderToken: made.Token},
		"the owner":  {Owner: true},
	} {
		if err := act(y, c); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := act(y, mail.Caller{Keyring: ring}); err != nil {
		t.Errorf("a process that has shown the token: %v", err)
	}
	wantError(t, "that process for another agent", y.tryRetire(mail.Caller{Keyring: ring}, "BlueDog"), mail.CodeDenied)
	again := mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{Token: made.Token}, ask))(t)
	mailtest.Want(t, "a second token", again.Token, "")
	if err := act(y.with(mail.Config{Tokens: mail.TokensOff}), mail.Caller{}); err != nil {
		t.Errorf("with tokens off: %v", err)
	}
	y.rebuilt()
}

// tryRetire retires an agent of the shared project.
func (y *yard) tryRetire(c mail.Caller, name string) error {
	_, err := y.RetireAgent(y.Context(), c, agents.RetireArgs{ProjectKey: shared, AgentName: name})
	return err
}

func TestTheIssuingProcessNeedsNoTokenAndARotatedTokenIsWorthless(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	ring := &mail.Keyring{}
	ask := args("GreenLake")
	ask.WantToken = true
	made := mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{Keyring: ring}, ask))(t)
	mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{Keyring: ring}, ask))(t)
	_, err := y.RotateToken(t.Context(), mail.Caller{}, shared, "GreenLake")
	wantError(t, "rotating without it", err, mail.CodeDenied)
	next := mailtest.Must(y.RotateToken(t.Context(), mail.Caller{Owner: true}, shared, "greenlake"))(t)
	if next.Token == "" || next.Token == made.Token {
		t.Errorf("rotated to %q", next.Token)
	}
	wantError(t, "the former token", y.tryRetire(mail.Caller{Token: made.Token}, "GreenLake"), mail.CodeDenied)
	wantError(t, "the process that had it", y.tryRetire(mail.Caller{Keyring: ring}, "GreenLake"), mail.CodeDenied)
	if err := y.tryRetire(mail.Caller{Token: next.Token}, "GreenLake"); err != nil {
		t.Error(err)
	}
	y.rebuilt()
}

func TestEnforcedTokensProtectEveryAgent(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	y.register(shared, "BlueDog")
	strict := y.with(mail.Config{Tokens: mail.TokensEnforced})
	made := mailtest.Must(strict.RegisterAgent(t.Context(), mail.Caller{}, args("GreenLake")))(t)
	if made.Token == "" {
		t.Error("no token was issued")
	}
	wantError(t, "without it", strict.tryRetire(mail.Caller{}, "GreenLake"), mail.CodeDenied)
	wantError(t, "an agent that has none", strict.tryRetire(mail.Caller{Token: made.Token}, "BlueDog"), mail.CodeDenied)
	got := mailtest.Must(strict.RotateToken(t.Context(), mail.Caller{Owner: true}, shared, "BlueDog"))(t)
	if err := strict.tryRetire(mail.Caller{HeaderToken: got.Token}, "BlueDog"); err != nil {
		t.Error(err)
	}
	off := y.with(mail.Config{Tokens: mail.TokensOff})
	ask := args("RedFox")
	ask.WantToken = true
	mailtest.Want(t, "a token with tokens off", mailtest.Must(off.RegisterAgent(t.Context(), mail.Caller{}, ask))(t).Token, "")
}

func TestWhoisKnowsAgentsOfAnyCaseAndSuggestsForOthers(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	y.register(shared, "GreenLake")
	y.register(shared, "BlueDog")
	got := mailtest.Must(y.Whois(t.Context(), mail.Caller{}, agents.WhoisArgs{ProjectKey: shared, AgentName: " greenlake "}))(t)
	mailtest.WantFields(t, "whois", got, "id", "name", "program", "model", "task_description", "inception_ts", "last_active_ts", "project_id", "attachments_policy", "recent_commits")
	mailtest.Want(t, "name", got.Name, "GreenLake")
	before := y.changes()
	who := func(name string) error {
		_, err := y.Whois(t.Context(), mail.Caller{}, agents.WhoisArgs{ProjectKey: shared, AgentName: name})
		return err
	}
	wantError(t, "misspelt", who("GreenLane"), mail.CodeNotFound, "not found", `"agent":"GreenLane"`, `"suggestions":[{"name":"GreenLake","score":0.88`,
		`{"tool":"list_agents","arguments":{"project_key":"/nowhere/shared"}}`, `"tool":"register_agent"`, `"name":"GreenLane"`)
	wantError(t, "a mistake", who("@all"), mail.CodeNotFound, `"mistake":"BROADCAST_ATTEMPT"`, `"suggestions":[]`)
	wantError(t, "a program", who("codex"), mail.CodeNotFound, `"mistake":"PROGRAM_NAME_AS_AGENT"`)
	wantError(t, "blank", who(" "), mail.CodeMissing)
	wantError(t, "placeholder", who("AGENT_NAME"), mail.CodeConfiguration)
	wantError(t, "NUL", who("a\x00"), mail.CodeInvalid)
	zero := 0
	_, err := y.Whois(t.Context(), mail.Caller{}, agents.WhoisArgs{ProjectKey: shared, AgentName: "BlueDog", CommitLimit: &zero})
	wantError(t, "limit", err, mail.CodeLimit, "limit must be at least 1, got 0. Use a positive integer.", `"max":1000,"min":1,"provided":0`)
	mailtest.Want(t, "changes", y.changes(), before)
}

func TestWhoisTellsTheCommitsThatHoldWhatAnAgentDid(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	y.register(shared, "GreenLake")
	lake := y.changes()
	y.register(shared, "BlueDog")
	mailtest.Must(y.RetireAgent(t.Context(), mail.Caller{Owner: true}, agents.RetireArgs{ProjectKey: shared, AgentName: "GreenLake"}))(t)
	err := y.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		for _, k := range []struct {
			first, last int64
			sha         string
		}{{1, lake, "aa"}, {lake + 1, lake + 1, "bb"}, {lake + 2, lake + 2, "cc"}} {
			_, err := tx.Exec(ctx, `INSERT INTO archive_commits SELECT project_key, ?, ?, ?, 'agent: profile', 1700000000123456000 FROM mail_projects`, k.last, k.first, k.sha)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	commits := func(name string, a agents.WhoisArgs) (all string) {
		a.ProjectKey, a.AgentName = shared, name
		for _, k := range mailtest.Must(y.Whois(t.Context(), mail.Caller{}, a))(t).Commits {
			mailtest.WantFields(t, "a commit", k, "hexsha", "summary", "authored_ts")
			mailtest.Want(t, "time", k.Authored.String(), "2023-11-14T22:13:20.123456+00:00")
			all += k.SHA
		}
		return all
	}
	one := 1
	mailtest.Want(t, "of GreenLake", commits("GreenLake", agents.WhoisArgs{}), "ccaa")
	mailtest.Want(t, "the newest", commits("GreenLake", agents.WhoisArgs{CommitLimit: &one}), "cc")
	mailtest.Want(t, "of BlueDog", commits("BlueDog", agents.WhoisArgs{}), "bb")
	mailtest.Want(t, "none wanted", commits("BlueDog", agents.WhoisArgs{NoCommits: true}), "")
}

func TestListAgentsByNameActivityAndProgram(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	y.register(shared, "RedFox")
	y.clock.Move(72 * time.Hour)
	y.register(shared, "BlueDog")
	codex := args("GreenLake")
	codex.Program = "codex"
	mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{}, codex))(t)
	y.register(shared, "AmberOwl")
	mailtest.Must(y.RetireAgent(t.Context(), mail.Caller{}, agents.RetireArgs{ProjectKey: shared, AgentName: "AmberOwl"}))(t)
	names := func(a agents.ListAgentsArgs) string {
		a.ProjectKey = shared
		var all []string
		for _, l := range mailtest.Must(y.ListAgents(t.Context(), mail.Caller{}, a))(t) {
			all = append(all, l.Name)
			mailtest.WantFields(t, "an agent", l, "id", "name", "program", "model", "task_description", "inception_ts", "last_active_ts", "project_id", "attachments_policy",
				"contact_policy", "unread_count", "active_reservations", "branch", "worktree", "retired_ts")
		}
		return strings.Join(all, " ")
	}
	day, four, two, none := 1, 4, 2, 0
	before := y.changes()
	mailtest.Want(t, "all", names(agents.ListAgentsArgs{}), "BlueDog GreenLake RedFox")
	mailtest.Want(t, "with the retired", names(agents.ListAgentsArgs{IncludeRetired: true}), "AmberOwl BlueDog GreenLake RedFox")
	mailtest.Want(t, "active within a day", names(agents.ListAgentsArgs{ActiveWithinDays: &day}), "BlueDog GreenLake")
	mailtest.Want(t, "active within four", names(agents.ListAgentsArgs{ActiveWithinDays: &four}), "BlueDog GreenLake RedFox")
	mailtest.Want(t, "of a program", names(agents.ListAgentsArgs{Program: "Codex"}), "GreenLake")
	mailtest.Want(t, "two", names(agents.ListAgentsArgs{Limit: &two}), "BlueDog GreenLake")
	_, err := y.ListAgents(t.Context(), mail.Caller{}, agents.ListAgentsArgs{ProjectKey: shared, Limit: &none})
	wantError(t, "none", err, mail.CodeLimit)
	_, err = y.ListAgents(t.Context(), mail.Caller{}, agents.ListAgentsArgs{ProjectKey: shared, ActiveWithinDays: &none})
	wantError(t, "within no day", err, mail.CodeInvalid, `"field":"active_within_days"`)
	mailtest.Want(t, "changes", y.changes(), before)
}

func TestRetiringReleasesReservationsHidesTheAgentAndIsUndoneByRegistering(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	y.register(shared, "GreenLake")
	y.register(shared, "BlueDog")
	uid := y.ensure(shared).UID
	at := mail.TimeOf(y.clock.Now())
	hold := func(id int64, agent string, expires mail.Time) {
		t.Helper()
		err := y.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
			_, err := documents.Apply(ctx, tx, mail.Actor{}, mail.Archive{}, &mail.Reservation{
				ID: id, UID: "r" + agent + string(rune('0'+id)), ProjectUID: uid, Agent: agent, PathPattern: "a/**", LitPrefix: "a", Exclusive: true, Source: "tool",
				Reason: "r", Created: at, Expires: expires, Ordinal: id, ArchivePath: mail.ReservationPath(id, id),
			}, true)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	hour := mail.Time(time.Hour)
	hold(1, "GreenLake", at+hour)
	hold(2, "GreenLake", at+hour)
	hold(3, "GreenLake", at) // expired
	hold(4, "BlueDog", at+hour)
	holding := func(name string) int {
		for _, l := range mailtest.Must(y.ListAgents(t.Context(), mail.Caller{}, agents.ListAgentsArgs{ProjectKey: shared, IncludeRetired: true}))(t) {
			if l.Name == name {
				return l.Reservations
			}
		}
		return -1
	}
	mailtest.Want(t, "held before", holding("GreenLake"), 2)
	retire := agents.RetireArgs{ProjectKey: shared, AgentName: "greenlake", Reason: "done\x1b"}
	first := mailtest.Must(y.RetireAgent(t.Context(), mail.Caller{}, retire))(t)
	mailtest.WantFields(t, "retire_agent", first, "agent", "retired", "retired_at", "released")
	mailtest.Want(t, "first", first, agents.Retired{Agent: "GreenLake", Retired: true, At: first.At, Released: 2})
	mailtest.Want(t, "held after", holding("GreenLake"), 0)
	mailtest.Want(t, "held by the other", holding("BlueDog"), 1)
	var kinds string
	y.query(&kinds, "SELECT group_concat(id || ifnull(release_kind, '-') || (released_ts IS NOT NULL), ' ') FROM mail_reservations ORDER BY id")
	mailtest.Want(t, "kinds of release", kinds, "1retired1 2retired1 3-0 4-0")
	before := y.changes()
	mailtest.Want(t, "again", mailtest.Must(y.RetireAgent(t.Context(), mail.Caller{}, retire))(t), agents.Retired{Agent: "GreenLake", Retired: true, At: first.At, Released: 0})
	mailtest.Want(t, "changes by retiring again", y.changes(), before)
	mailtest.Want(t, "whois still knows it", mailtest.Must(y.Whois(t.Context(), mail.Caller{}, agents.WhoisArgs{ProjectKey: shared, AgentName: "GreenLake"}))(t).Name, "GreenLake")
	_, err := y.RotateToken(t.Context(), mail.Caller{}, shared, "GreenLake")
	wantError(t, "acting", err, mail.CodeDenied, "retired", `"tool":"register_agent","arguments":{"model":"m1","name":"GreenLake","program":"claude-code"`)
	back := y.register(shared, "GreenLake")
	mailtest.Want(t, "id when back", back.ID, 1)
	mailtest.Want(t, "listed when back", len(mailtest.Must(y.ListAgents(t.Context(), mail.Caller{}, agents.ListAgentsArgs{ProjectKey: shared}))(t)), 2)
	wantError(t, "nobody", y.tryRetire(mail.Caller{}, "NobodyThere"), mail.CodeNotFound)
	_, err = y.RetireAgent(t.Context(), mail.Caller{}, agents.RetireArgs{ProjectKey: shared, AgentName: "GreenLake", Reason: "\xff"})
	wantError(t, "broken reason", err, mail.CodeInvalid, `"field":"reason"`)
	y.rebuilt()
}

func TestMirrorsAndThePersonAreNoActors(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	home := "0123456789abcdef0123/RedFox"
	y.restore(&mail.Agent{Name: "RedFox", Program: "p", Model: "m", Inception: 1000, AttachmentsPolicy: "auto", ContactPolicy: "auto", Home: &home})
	wantError(t, "a mirror", y.tryRetire(mail.Caller{}, "RedFox"), mail.CodeDenied, "mirror", home)
	wantError(t, "a mirror for the owner", y.tryRetire(mail.Caller{Owner: true}, "RedFox"), mail.CodeDenied)
	_, err := y.RegisterAgent(t.Context(), mail.Caller{}, args("RedFox"))
	wantError(t, "registering over a mirror", err, mail.CodeDenied)

	var person *mail.Agent
	for range 2 {
		err := y.WriteIn(t.Context(), mail.Caller{Owner: true}, shared, func(ctx context.Context, s *mail.CallTx) (err error) {
			person, err = agents.Overseer(ctx, s)
			mailtest.Want(t, "author", s.By.Agent, "HumanOverseer (by owner)")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	mailtest.Want(t, "person", person.Name+" "+person.Program+" "+person.Model, "HumanOverseer WebUI Human")
	wantError(t, "the owner retiring the person", y.tryRetire(mail.Caller{Owner: true}, mail.Overseer), mail.CodeDenied, "cannot be retired")
	wantError(t, "an agent as the person", y.tryRetire(mail.Caller{}, "humanoverseer"), mail.CodeDenied)
	_, err = y.RegisterAgent(t.Context(), mail.Caller{}, args(mail.Overseer))
	wantError(t, "registering as the person", err, mail.CodeAgentName)
	_, err = y.CreateAgent(t.Context(), mail.Caller{Owner: true}, args(mail.Overseer))
	wantError(t, "the owner registering as the person", err, mail.CodeAgentName)
	y.rebuilt()
}

func TestTheLogNamesAgentAndSessionAndTheOwnerWhoActedForIt(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{Session: "s1"}, args("GreenLake")))(t)
	mailtest.Must(y.RotateToken(t.Context(), mail.Caller{Owner: true}, shared, "GreenLake"))(t)
	var authors string
	y.query(&authors, "SELECT group_concat(agent || '/' || ifnull(session, ''), ', ') FROM (SELECT * FROM change_log WHERE kind = 'mail.agent' ORDER BY seq)")
	mailtest.Want(t, "authors", authors, "GreenLake/s1, GreenLake (by owner)/")
}

func (y *yard) bonds() (text string) {
	y.Helper()
	y.query(&text, `SELECT ifnull(group_concat(line, ', '), '') FROM (SELECT s.id || '=' || a.name || '/' || m.source || iif(m.ended_ts IS NULL, '', '!') AS line
FROM mail_sessions m JOIN sessions s ON s.key = m.session_key JOIN mail_agents a ON a.id = m.agent_id ORDER BY s.key, a.id)`)
	return text
}

func TestSessionsAreBoundToTheAgentsAsWhichTheyAct(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	harness := project.Process{PID: 4711, Start: 5}
	err := y.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		place, err := project.Locate(shared, y.home)
		if err == nil {
			_, _, err = project.RecordSession(ctx, tx, project.SessionEvent{ID: "live", Place: place, Harness: "claude", PID: harness.PID, PIDStart: harness.Start})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	above := []project.Process{{PID: 1, Start: 1}, harness}
	mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{Ancestors: above, Session: "other", Transport: "T"}, args("GreenLake")))(t)
	mailtest.Want(t, "the harness's session comes first", y.bonds(), "live=GreenLake/server")
	mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{Ancestors: above[:1], Session: "named", Transport: "T"}, args("GreenLake")))(t)
	mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{Transport: "T"}, args("BlueDog")))(t)
	mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{}, args("RedFox")))(t)
	mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{Owner: true, Session: "named"}, args("RedFox")))(t)
	mailtest.Want(t, "then the named one and the server's", y.bonds(), "live=GreenLake/server, named=GreenLake/argument, T=BlueDog/server")
	mailtest.Must(y.RotateToken(t.Context(), mail.Caller{Ancestors: above}, shared, "BlueDog"))(t)
	mailtest.Want(t, "acting binds too", y.bonds(), "live=GreenLake/server, live=BlueDog/server, named=GreenLake/argument, T=BlueDog/server")
	for _, id := range []string{" ", "a\nb", strings.Repeat("x", 201), "\xff"} {
		_, err := y.RegisterAgent(t.Context(), mail.Caller{Session: id}, args("RedFox"))
		wantError(t, id, err, mail.CodeInvalid, `"field":"session_id"`)
	}

	bindAs := func(c mail.Caller, session, agent, source string) error {
		return y.Bind(t.Context(), c, y.row(shared), agents.Binding{Session: session, Agent: agent, Source: source})
	}
	for _, err := range []error{
		bindAs(mail.Caller{}, "live", "RedFox", mail.SourceEnvironment),
		bindAs(mail.Caller{}, "live", "RedFox", mail.SourceCall),    // the first source is kept
		bindAs(mail.Caller{}, "unknown", "RedFox", mail.SourceCall), // an unknown session cannot be bound
	} {
		if err != nil {
			t.Error(err)
		}
	}
	mailtest.Want(t, "bound by hooks", y.bonds(), "live=GreenLake/server, live=BlueDog/server, live=RedFox/environment, named=GreenLake/argument, T=BlueDog/server")
	wantError(t, "a protected agent in the environment", bindAs(mail.Caller{}, "live", "BlueDog", mail.SourceEnvironment), mail.CodeDenied)
	wantError(t, "an unknown agent", bindAs(mail.Caller{}, "live", "GoldBear", mail.SourceEnvironment), mail.CodeNotFound)
	wantError(t, "the person", bindAs(mail.Caller{}, "live", mail.Overseer, mail.SourceCall), mail.CodeNotFound)
	wantError(t, "an unknown source", bindAs(mail.Caller{}, "live", "RedFox", "guess"), mail.CodeInvalid)

	own := func() (names string) {
		err := y.WriteIn(t.Context(), mail.Caller{Ancestors: above}, shared, func(ctx context.Context, s *mail.CallTx) error {
			all, err := mail.BoundAgents(ctx, s.Tx, s.Session.Key, s.Project.ID)
			for _, a := range all {
				names += a.Name + " "
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	mailtest.Want(t, "own agents", own(), "GreenLake BlueDog RedFox ")
	err = y.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE mail_sessions SET source = 'edit' WHERE source = 'environment' OR source = 'server' AND agent_id = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mailtest.Want(t, "those made for edits come last", own(), "BlueDog GreenLake RedFox ")
	mailtest.Must(y.RetireAgent(t.Context(), mail.Caller{}, agents.RetireArgs{ProjectKey: shared, AgentName: "RedFox"}))(t)
	wantError(t, "a retired agent", bindAs(mail.Caller{}, "live", "RedFox", mail.SourceEnvironment), mail.CodeDenied)
	mailtest.Want(t, "own agents without the retired", own(), "BlueDog GreenLake ")
	err = y.WriteIn(t.Context(), mail.Caller{Ancestors: above}, shared, func(ctx context.Context, s *mail.CallTx) error {
		return mail.Unbind(ctx, s.Tx, s.Session.Key, s.Now)
	})
	if err != nil {
		t.Fatal(err)
	}
	mailtest.Want(t, "own agents of an ended session", own(), "")
	y.register(shared, "GreenLake")
	mailtest.Must(y.RegisterAgent(t.Context(), mail.Caller{Ancestors: above}, args("GreenLake")))(t)
	mailtest.Want(t, "own agents when it goes on", own(), "GreenLake ")
}
