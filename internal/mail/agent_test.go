package mail

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/project"
	"cairn/internal/store"
)

const shared = "/nowhere/shared"

func args(name string) RegisterArgs {
	return RegisterArgs{ProjectKey: shared, Program: "claude-code", Model: "m1", Name: name}
}

func TestRegisteringAgainBringsTheSameAgentUpToDate(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	first := y.register(shared, "green-lake")
	wantFields(t, "register_agent", first, "id", "name", "program", "model", "task_description", "inception_ts", "last_active_ts", "project_id", "attachments_policy")
	want(t, "name", first.Name, "GreenLake")
	want(t, "policy", first.AttachmentsPolicy, "auto")
	want(t, "last active", first.LastActive, first.Inception)
	a := args("GREENLAKE")
	a.Program, a.Model, a.TaskDescription, a.AttachmentsPolicy = " codex\n", "m2", "line one\nline two", "file"
	again := must(y.RegisterAgent(t.Context(), Caller{}, a))(t)
	active := again.LastActive
	again.LastActive = first.LastActive
	want(t, "again", again.AgentInfo, AgentInfo{
		first.ID, "GreenLake", "codex", "m2", "line one\nline two", first.Inception, first.LastActive, first.ProjectID, "file",
	})
	if active <= first.LastActive {
		t.Errorf("last active %s, before %s", active, first.LastActive)
	}
	before := y.changes()
	same := must(y.RegisterAgent(t.Context(), Caller{}, a))(t)
	want(t, "changes by saying the same", y.changes(), before)
	if same.LastActive <= active {
		t.Errorf("last active %s, before %s", same.LastActive, active)
	}
	y.rebuilt()
}

func TestRegisteringRefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	for what, c := range map[string]struct {
		change func(*RegisterArgs)
		code   string
		text   string
	}{
		"program":     {func(a *RegisterArgs) { a.Program = " \n" }, CodeEmptyProgram, "program cannot be empty"},
		"model":       {func(a *RegisterArgs) { a.Model = "" }, CodeEmptyModel, "model cannot be empty"},
		"policy":      {func(a *RegisterArgs) { a.AttachmentsPolicy = "inlined" }, CodeInvalid, `"field":"attachments_policy"`},
		"task":        {func(a *RegisterArgs) { a.TaskDescription = strings.Repeat("x", maxTask+1) }, CodeInvalid, `"field":"task_description"`},
		"NUL":         {func(a *RegisterArgs) { a.Name = "Green\x00Lake" }, CodeInvalid, `"field":"name"`},
		"text":        {func(a *RegisterArgs) { a.TaskDescription = "\xc3" }, CodeInvalid, `"field":"task_description"`},
		"broken word": {func(a *RegisterArgs) { a.Program = "\xed\xa0\x80" }, CodeInvalid, `"field":"program"`},
		"placeholder": {func(a *RegisterArgs) { a.Name = "YOUR_AGENT" }, CodeConfiguration, `"provided":"YOUR_AGENT"`},
		"example":     {func(a *RegisterArgs) { a.Name = "<AGENT>" }, CodeConfiguration, `"field":"name"`},
		"person":      {func(a *RegisterArgs) { a.Name = "humanOverseer" }, CodeAgentName, "reserved"},
		"a person":    {func(a *RegisterArgs) { a.Name = "Human Overseer" }, CodeAgentName, "reserved"},
		"project":     {func(a *RegisterArgs) { a.ProjectKey = "$PROJECT" }, CodeConfiguration, `"field":"project_key"`},
	} {
		a := args("")
		c.change(&a)
		_, err := y.RegisterAgent(t.Context(), Caller{}, a)
		wantError(t, what, err, c.code, c.text)
	}
	full := y.with(Config{DiskLevel: func() DiskLevel { return DiskFatal }})
	_, err := full.RegisterAgent(t.Context(), Caller{}, args(""))
	wantError(t, "a full disk", err, CodeDiskFull, `"recoverable":true`)
	want(t, "changes", y.changes(), 0)
	for _, room := range []DiskLevel{DiskOK, DiskWarning, DiskCritical} {
		must(y.with(Config{DiskLevel: func() DiskLevel { return room }}).RegisterAgent(t.Context(), Caller{}, args("")))(t)
	}
}

func TestTheNameModeDecidesWhatBecomesOfAName(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	strict, auto := y.with(Config{NameMode: Strict}), y.with(Config{NameMode: AlwaysAuto})
	for name, code := range map[string]string{
		"claude": CodeProgramName, "gpt-5": CodeModelName, "ann@b.example": CodeEmail, "@all": CodeBroadcast, "BuildBot": CodeDescriptive,
		"root": CodeUserName, "Nobody": CodeAgentName, strings.Repeat("x", 129): CodeAgentName,
	} {
		_, err := strict.RegisterAgent(t.Context(), Caller{}, args(name))
		wantError(t, name, err, code, `"field":"name"`)
		_, err = strict.CreateAgent(t.Context(), Caller{}, args(name))
		wantError(t, name, err, code, `"field":"name_hint"`)
		for _, o := range []*yard{y, auto} {
			made := must(o.RegisterAgent(t.Context(), Caller{}, args(name)))(t)
			if pair, ok := wholeName(made.Name); !ok || pair != made.Name {
				t.Errorf("%s became %s", name, made.Name)
			}
		}
	}
	want(t, "a valid name in strict", must(strict.RegisterAgent(t.Context(), Caller{}, args("misty owl")))(t).Name, "MistyOwl")
	made := must(auto.CreateAgent(t.Context(), Caller{}, args("MistyOwl")))(t)
	if made.Name == "MistyOwl" {
		t.Error("always_auto took the name")
	}
	must(auto.RegisterAgent(t.Context(), Caller{}, args("YOUR_AGENT")))(t)
	// A name that is registered is itself in every mode but the last, whatever it looks like.
	y.restore(&Agent{Name: "worker7", Program: "p", Model: "m", Inception: 1000, AttachmentsPolicy: "auto", ContactPolicy: "auto"})
	for _, o := range []*yard{y, strict} {
		want(t, "a registered name", must(o.RegisterAgent(t.Context(), Caller{}, args("WORKER7")))(t).Name, "worker7")
	}
	y.rebuilt()
}

// restore takes an agent over from elsewhere into the shared project.
func (y *yard) restore(a *Agent) {
	y.Helper()
	a.ProjectUID = y.ensure(shared).UID
	err := y.store.Write(y.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := Apply(ctx, tx, Actor{}, Archive{}, a, false)
		return err
	})
	if err != nil {
		y.Fatal(err)
	}
}

func TestCreatingRefusesANameThatIsTaken(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	must(y.CreateAgent(t.Context(), Caller{}, args("GreenLake")))(t)
	must(y.RetireAgent(t.Context(), Caller{}, RetireArgs{ProjectKey: shared, AgentName: "GreenLake"}))(t)
	before := y.changes()
	for _, name := range []string{"GreenLake", "green lake"} {
		_, err := y.CreateAgent(t.Context(), Caller{}, args(name))
		wantError(t, name, err, CodeInvalid, "already exists in this project", `"field":"name_hint"`, `"tool":"register_agent"`, `"name":"GreenLake"`)
	}
	want(t, "changes", y.changes(), before)
	if made := must(y.CreateAgent(t.Context(), Caller{}, args("not a name")))(t); made.ID != 2 {
		t.Errorf("a clash was drawn: %+v", made)
	}
	other := args("GreenLake")
	other.ProjectKey = "/nowhere/else"
	must(y.CreateAgent(t.Context(), Caller{}, other))(t)
}

func TestRegisteringKeepsSecretsOut(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	secret := "ghp_" + strings.Repeat("aB3x", 9)
	a := args("GreenLake")
	a.TaskDescription, a.Program = "use "+secret, "tool "+secret
	got := must(y.RegisterAgent(t.Context(), Caller{}, a))(t)
	if strings.Contains(got.TaskDescription+got.Program, secret) {
		t.Errorf("stored: %+v", got)
	}
	a.Program = "a\x1b[31mb\r\nc\u2028d" + strings.Repeat("é", 300)
	got = must(y.RegisterAgent(t.Context(), Caller{}, a))(t)
	want(t, "program", got.Program, "a [31mb  c d"+strings.Repeat("é", 200-12))
}

func TestAnAgentsBranchAndWorktreeFollowWhereItRegisters(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	main := y.repo("app")
	side := y.path("trees", "side")
	y.git(main, "worktree", "add", "-q", "-b", "feature", side)
	p := y.ensure(main)
	where := func(c Caller, key, branch, worktree string) {
		t.Helper()
		a := RegisterArgs{ProjectKey: key, Program: "p", Model: "m", Name: "GreenLake"}
		must(y.RegisterAgent(t.Context(), c, a))(t)
		listed := must(y.ListAgents(t.Context(), c, ListAgentsArgs{ProjectKey: p.Slug}))(t)[0]
		got := func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		}
		want(t, "branch", got(listed.Branch), branch)
		want(t, "worktree", got(listed.Worktree), worktree)
	}
	where(Caller{}, p.Slug, "", "")
	where(Caller{}, side, "feature", "side")
	where(Caller{}, p.Slug, "feature", "side") // nothing is told, nothing changes
	where(Caller{}, main, "main", "")
	where(y.at(side), main, "feature", "side") // the working directory knows better
	where(y.at(main), side, "feature", "side") // a worktree that is named too
	where(y.at(y.mkdir(filepath.Join(main, "x"))), p.Slug, "main", "")
	where(y.at(y.mkdir(y.path("elsewhere"))), p.Slug, "main", "")
	where(y.at(y.repo("other")), side, "feature", "side")
	y.rebuilt()
}

func TestTokensProtectAgents(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	ask := args("GreenLake")
	ask.WantToken = true
	made := must(y.RegisterAgent(t.Context(), Caller{}, ask))(t)
	wantFields(t, "register_agent", made, "id", "name", "program", "model", "task_description", "inception_ts", "last_active_ts", "project_id",
		"attachments_policy", "registration_token")
	if len(made.Token) != 43 || strings.Trim(made.Token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		t.Errorf("the token has %d characters", len(made.Token))
	}
	var stored string
	y.query(&stored, "SELECT token_sha256 FROM mail_agents")
	want(t, "what is stored", stored, tokenHash(made.Token))
	var found int
	y.query(&found, "SELECT count(*) FROM changes WHERE instr(doc, ?)", made.Token)
	want(t, "changes with the token", found, 0)

	act := func(o *yard, c Caller) error {
		_, err := o.RegisterAgent(t.Context(), c, ask)
		return err
	}
	other := must(y.RegisterAgent(t.Context(), Caller{}, RegisterArgs{ProjectKey: shared, Program: "p", Model: "m", Name: "BlueDog", WantToken: true}))(t)
	for what, c := range map[string]Caller{
		"no token":        {},
		"another token":   {Token: other.Token},
		"half of it":      {Token: made.Token[:20]},
		"its hash":        {Token: stored},
		"in vain":         {Token: "x", HeaderToken: made.Token},
		"an empty ring":   {Keyring: &Keyring{}},
		"a wrong session": {Session: made.Token},
	} {
		wantError(t, what, act(y, c), CodeDenied, "GreenLake")
	}
	ring := &Keyring{}
	for what, c := range map[string]Caller{
		"the token":  {Token: made.Token, Keyring: ring},
		"the header": {HeaderToken: made.Token},
		"the owner":  {Owner: true},
	} {
		if err := act(y, c); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := act(y, Caller{Keyring: ring}); err != nil {
		t.Errorf("a process that has shown the token: %v", err)
	}
	wantError(t, "that process for another agent", y.tryRetire(Caller{Keyring: ring}, "BlueDog"), CodeDenied)
	again := must(y.RegisterAgent(t.Context(), Caller{Token: made.Token}, ask))(t)
	want(t, "a second token", again.Token, "")
	if err := act(y.with(Config{Tokens: TokensOff}), Caller{}); err != nil {
		t.Errorf("with tokens off: %v", err)
	}
	y.rebuilt()
}

// tryRetire retires an agent of the shared project.
func (y *yard) tryRetire(c Caller, name string) error {
	_, err := y.RetireAgent(y.Context(), c, RetireArgs{ProjectKey: shared, AgentName: name})
	return err
}

func TestTheIssuingProcessNeedsNoTokenAndARotatedTokenIsWorthless(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	ring := &Keyring{}
	ask := args("GreenLake")
	ask.WantToken = true
	made := must(y.RegisterAgent(t.Context(), Caller{Keyring: ring}, ask))(t)
	must(y.RegisterAgent(t.Context(), Caller{Keyring: ring}, ask))(t)
	_, err := y.RotateToken(t.Context(), Caller{}, shared, "GreenLake")
	wantError(t, "rotating without it", err, CodeDenied)
	next := must(y.RotateToken(t.Context(), Caller{Owner: true}, shared, "greenlake"))(t)
	if next.Token == "" || next.Token == made.Token {
		t.Errorf("rotated to %q", next.Token)
	}
	wantError(t, "the former token", y.tryRetire(Caller{Token: made.Token}, "GreenLake"), CodeDenied)
	wantError(t, "the process that had it", y.tryRetire(Caller{Keyring: ring}, "GreenLake"), CodeDenied)
	if err := y.tryRetire(Caller{Token: next.Token}, "GreenLake"); err != nil {
		t.Error(err)
	}
	y.rebuilt()
}

func TestEnforcedTokensProtectEveryAgent(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	y.register(shared, "BlueDog")
	strict := y.with(Config{Tokens: TokensEnforced})
	made := must(strict.RegisterAgent(t.Context(), Caller{}, args("GreenLake")))(t)
	if made.Token == "" {
		t.Error("no token was issued")
	}
	wantError(t, "without it", strict.tryRetire(Caller{}, "GreenLake"), CodeDenied)
	wantError(t, "an agent that has none", strict.tryRetire(Caller{Token: made.Token}, "BlueDog"), CodeDenied)
	got := must(strict.RotateToken(t.Context(), Caller{Owner: true}, shared, "BlueDog"))(t)
	if err := strict.tryRetire(Caller{HeaderToken: got.Token}, "BlueDog"); err != nil {
		t.Error(err)
	}
	off := y.with(Config{Tokens: TokensOff})
	ask := args("RedFox")
	ask.WantToken = true
	want(t, "a token with tokens off", must(off.RegisterAgent(t.Context(), Caller{}, ask))(t).Token, "")
}

func TestWhoisKnowsAgentsOfAnyCaseAndSuggestsForOthers(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	y.register(shared, "GreenLake")
	y.register(shared, "BlueDog")
	got := must(y.Whois(t.Context(), Caller{}, WhoisArgs{ProjectKey: shared, AgentName: " greenlake "}))(t)
	wantFields(t, "whois", got, "id", "name", "program", "model", "task_description", "inception_ts", "last_active_ts", "project_id", "attachments_policy", "recent_commits")
	want(t, "name", got.Name, "GreenLake")
	before := y.changes()
	who := func(name string) error {
		_, err := y.Whois(t.Context(), Caller{}, WhoisArgs{ProjectKey: shared, AgentName: name})
		return err
	}
	wantError(t, "misspelt", who("GreenLane"), CodeNotFound, "not found", `"agent":"GreenLane"`, `"suggestions":[{"name":"GreenLake","score":0.88`,
		`{"tool":"list_agents","arguments":{"project_key":"/nowhere/shared"}}`, `"tool":"register_agent"`, `"name":"GreenLane"`)
	wantError(t, "a mistake", who("@all"), CodeNotFound, `"mistake":"BROADCAST_ATTEMPT"`, `"suggestions":[]`)
	wantError(t, "a program", who("codex"), CodeNotFound, `"mistake":"PROGRAM_NAME_AS_AGENT"`)
	wantError(t, "blank", who(" "), CodeMissing)
	wantError(t, "placeholder", who("AGENT_NAME"), CodeConfiguration)
	wantError(t, "NUL", who("a\x00"), CodeInvalid)
	zero := 0
	_, err := y.Whois(t.Context(), Caller{}, WhoisArgs{ProjectKey: shared, AgentName: "BlueDog", CommitLimit: &zero})
	wantError(t, "limit", err, CodeLimit, "limit must be at least 1, got 0. Use a positive integer.", `"max":1000,"min":1,"provided":0`)
	want(t, "changes", y.changes(), before)
}

func TestWhoisTellsTheCommitsThatHoldWhatAnAgentDid(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	y.register(shared, "GreenLake")
	lake := y.changes()
	y.register(shared, "BlueDog")
	must(y.RetireAgent(t.Context(), Caller{Owner: true}, RetireArgs{ProjectKey: shared, AgentName: "GreenLake"}))(t)
	err := y.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
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
	commits := func(name string, a WhoisArgs) (all string) {
		a.ProjectKey, a.AgentName = shared, name
		for _, k := range must(y.Whois(t.Context(), Caller{}, a))(t).Commits {
			wantFields(t, "a commit", k, "hexsha", "summary", "authored_ts")
			want(t, "time", k.Authored.String(), "2023-11-14T22:13:20.123456+00:00")
			all += k.SHA
		}
		return all
	}
	one := 1
	want(t, "of GreenLake", commits("GreenLake", WhoisArgs{}), "ccaa")
	want(t, "the newest", commits("GreenLake", WhoisArgs{CommitLimit: &one}), "cc")
	want(t, "of BlueDog", commits("BlueDog", WhoisArgs{}), "bb")
	want(t, "none wanted", commits("BlueDog", WhoisArgs{NoCommits: true}), "")
}

func TestListAgentsByNameActivityAndProgram(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	y.register(shared, "RedFox")
	y.clock.Move(72 * time.Hour)
	y.register(shared, "BlueDog")
	codex := args("GreenLake")
	codex.Program = "codex"
	must(y.RegisterAgent(t.Context(), Caller{}, codex))(t)
	y.register(shared, "AmberOwl")
	must(y.RetireAgent(t.Context(), Caller{}, RetireArgs{ProjectKey: shared, AgentName: "AmberOwl"}))(t)
	names := func(a ListAgentsArgs) string {
		a.ProjectKey = shared
		var all []string
		for _, l := range must(y.ListAgents(t.Context(), Caller{}, a))(t) {
			all = append(all, l.Name)
			wantFields(t, "an agent", l, "id", "name", "program", "model", "task_description", "inception_ts", "last_active_ts", "project_id", "attachments_policy",
				"contact_policy", "unread_count", "active_reservations", "branch", "worktree", "retired_ts")
		}
		return strings.Join(all, " ")
	}
	day, four, two, none := 1, 4, 2, 0
	before := y.changes()
	want(t, "all", names(ListAgentsArgs{}), "BlueDog GreenLake RedFox")
	want(t, "with the retired", names(ListAgentsArgs{IncludeRetired: true}), "AmberOwl BlueDog GreenLake RedFox")
	want(t, "active within a day", names(ListAgentsArgs{ActiveWithinDays: &day}), "BlueDog GreenLake")
	want(t, "active within four", names(ListAgentsArgs{ActiveWithinDays: &four}), "BlueDog GreenLake RedFox")
	want(t, "of a program", names(ListAgentsArgs{Program: "Codex"}), "GreenLake")
	want(t, "two", names(ListAgentsArgs{Limit: &two}), "BlueDog GreenLake")
	_, err := y.ListAgents(t.Context(), Caller{}, ListAgentsArgs{ProjectKey: shared, Limit: &none})
	wantError(t, "none", err, CodeLimit)
	_, err = y.ListAgents(t.Context(), Caller{}, ListAgentsArgs{ProjectKey: shared, ActiveWithinDays: &none})
	wantError(t, "within no day", err, CodeInvalid, `"field":"active_within_days"`)
	want(t, "changes", y.changes(), before)
}

func TestRetiringReleasesReservationsHidesTheAgentAndIsUndoneByRegistering(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	y.register(shared, "GreenLake")
	y.register(shared, "BlueDog")
	uid := y.ensure(shared).UID
	at := timeOf(y.clock.Now())
	hold := func(id int64, agent string, expires Time) {
		t.Helper()
		err := y.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
			_, err := Apply(ctx, tx, Actor{}, Archive{}, &Reservation{
				ID: id, UID: "r" + agent + string(rune('0'+id)), ProjectUID: uid, Agent: agent, PathPattern: "a/**", LitPrefix: "a", Exclusive: true, Source: "tool",
				Reason: "r", Created: at, Expires: expires, Ordinal: id, ArchivePath: reservationPath(id, id),
			}, true)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	hour := Time(time.Hour)
	hold(1, "GreenLake", at+hour)
	hold(2, "GreenLake", at+hour)
	hold(3, "GreenLake", at) // expired
	hold(4, "BlueDog", at+hour)
	holding := func(name string) int {
		for _, l := range must(y.ListAgents(t.Context(), Caller{}, ListAgentsArgs{ProjectKey: shared, IncludeRetired: true}))(t) {
			if l.Name == name {
				return l.Reservations
			}
		}
		return -1
	}
	want(t, "held before", holding("GreenLake"), 2)
	retire := RetireArgs{ProjectKey: shared, AgentName: "greenlake", Reason: "done\x1b"}
	first := must(y.RetireAgent(t.Context(), Caller{}, retire))(t)
	wantFields(t, "retire_agent", first, "agent", "retired", "retired_at", "released")
	want(t, "first", first, Retired{"GreenLake", true, first.At, 2})
	want(t, "held after", holding("GreenLake"), 0)
	want(t, "held by the other", holding("BlueDog"), 1)
	var kinds string
	y.query(&kinds, "SELECT group_concat(id || ifnull(release_kind, '-') || (released_ts IS NOT NULL), ' ') FROM mail_reservations ORDER BY id")
	want(t, "kinds of release", kinds, "1retired1 2retired1 3-0 4-0")
	before := y.changes()
	want(t, "again", must(y.RetireAgent(t.Context(), Caller{}, retire))(t), Retired{"GreenLake", true, first.At, 0})
	want(t, "changes by retiring again", y.changes(), before)
	want(t, "whois still knows it", must(y.Whois(t.Context(), Caller{}, WhoisArgs{ProjectKey: shared, AgentName: "GreenLake"}))(t).Name, "GreenLake")
	_, err := y.RotateToken(t.Context(), Caller{}, shared, "GreenLake")
	wantError(t, "acting", err, CodeDenied, "retired", `"tool":"register_agent","arguments":{"model":"m1","name":"GreenLake","program":"claude-code"`)
	back := y.register(shared, "GreenLake")
	want(t, "id when back", back.ID, 1)
	want(t, "listed when back", len(must(y.ListAgents(t.Context(), Caller{}, ListAgentsArgs{ProjectKey: shared}))(t)), 2)
	wantError(t, "nobody", y.tryRetire(Caller{}, "NobodyThere"), CodeNotFound)
	_, err = y.RetireAgent(t.Context(), Caller{}, RetireArgs{ProjectKey: shared, AgentName: "GreenLake", Reason: "\xff"})
	wantError(t, "broken reason", err, CodeInvalid, `"field":"reason"`)
	y.rebuilt()
}

func TestMirrorsAndThePersonAreNoActors(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	home := "0123456789abcdef0123/RedFox"
	y.restore(&Agent{Name: "RedFox", Program: "p", Model: "m", Inception: 1000, AttachmentsPolicy: "auto", ContactPolicy: "auto", Home: &home})
	wantError(t, "a mirror", y.tryRetire(Caller{}, "RedFox"), CodeDenied, "mirror", home)
	wantError(t, "a mirror for the owner", y.tryRetire(Caller{Owner: true}, "RedFox"), CodeDenied)
	_, err := y.RegisterAgent(t.Context(), Caller{}, args("RedFox"))
	wantError(t, "registering over a mirror", err, CodeDenied)

	var person *Agent
	for range 2 {
		err := y.writeIn(t.Context(), Caller{Owner: true}, shared, func(ctx context.Context, s *callTx) (err error) {
			person, err = s.overseer(ctx)
			want(t, "author", s.by.Agent, "HumanOverseer (by owner)")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want(t, "person", person.Name+" "+person.Program+" "+person.Model, "HumanOverseer WebUI Human")
	wantError(t, "the owner retiring the person", y.tryRetire(Caller{Owner: true}, Overseer), CodeDenied, "cannot be retired")
	wantError(t, "an agent as the person", y.tryRetire(Caller{}, "humanoverseer"), CodeDenied)
	_, err = y.RegisterAgent(t.Context(), Caller{}, args(Overseer))
	wantError(t, "registering as the person", err, CodeAgentName)
	_, err = y.CreateAgent(t.Context(), Caller{Owner: true}, args(Overseer))
	wantError(t, "the owner registering as the person", err, CodeAgentName)
	y.rebuilt()
}

func TestTheLogNamesAgentAndSessionAndTheOwnerWhoActedForIt(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	must(y.RegisterAgent(t.Context(), Caller{Session: "s1"}, args("GreenLake")))(t)
	must(y.RotateToken(t.Context(), Caller{Owner: true}, shared, "GreenLake"))(t)
	var authors string
	y.query(&authors, "SELECT group_concat(agent || '/' || ifnull(session, ''), ', ') FROM (SELECT * FROM change_log WHERE kind = 'mail.agent' ORDER BY seq)")
	want(t, "authors", authors, "GreenLake/s1, GreenLake (by owner)/")
}

func (y *yard) bonds() (text string) {
	y.Helper()
	y.query(&text, `SELECT ifnull(group_concat(line, ', '), '') FROM (SELECT s.id || '=' || a.name || '/' || m.source || iif(m.ended_ts IS NULL, '', '!') AS line
FROM mail_sessions m JOIN sessions s ON s.key = m.session_key JOIN mail_agents a ON a.id = m.agent_id ORDER BY s.key, a.id)`)
	return text
}

func TestSessionsAreBoundToTheAgentsAsWhichTheyAct(t *testing.T) {
	t.Parallel()
	y := newYard(t, Config{})
	harness := project.Process{PID: 4711, Start: 5}
	err := y.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
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
	must(y.RegisterAgent(t.Context(), Caller{Ancestors: above, Session: "other", Transport: "T"}, args("GreenLake")))(t)
	want(t, "the harness's session comes first", y.bonds(), "live=GreenLake/server")
	must(y.RegisterAgent(t.Context(), Caller{Ancestors: above[:1], Session: "named", Transport: "T"}, args("GreenLake")))(t)
	must(y.RegisterAgent(t.Context(), Caller{Transport: "T"}, args("BlueDog")))(t)
	must(y.RegisterAgent(t.Context(), Caller{}, args("RedFox")))(t)
	must(y.RegisterAgent(t.Context(), Caller{Owner: true, Session: "named"}, args("RedFox")))(t)
	want(t, "then the named one and the server's", y.bonds(), "live=GreenLake/server, named=GreenLake/argument, T=BlueDog/server")
	must(y.RotateToken(t.Context(), Caller{Ancestors: above}, shared, "BlueDog"))(t)
	want(t, "acting binds too", y.bonds(), "live=GreenLake/server, live=BlueDog/server, named=GreenLake/argument, T=BlueDog/server")
	for _, id := range []string{" ", "a\nb", strings.Repeat("x", 201), "\xff"} {
		_, err := y.RegisterAgent(t.Context(), Caller{Session: id}, args("RedFox"))
		wantError(t, id, err, CodeInvalid, `"field":"session_id"`)
	}

	bindAs := func(c Caller, session, agent, source string) error {
		return y.Bind(t.Context(), c, y.row(shared), Binding{session, agent, source})
	}
	for _, err := range []error{
		bindAs(Caller{}, "live", "RedFox", SourceEnvironment),
		bindAs(Caller{}, "live", "RedFox", SourceCall),    // the first source stays
		bindAs(Caller{}, "unknown", "RedFox", SourceCall), // there is nothing to bind
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want(t, "bound by hooks", y.bonds(), "live=GreenLake/server, live=BlueDog/server, live=RedFox/environment, named=GreenLake/argument, T=BlueDog/server")
	wantError(t, "a protected agent in the environment", bindAs(Caller{}, "live", "BlueDog", SourceEnvironment), CodeDenied)
	wantError(t, "an unknown agent", bindAs(Caller{}, "live", "GoldBear", SourceEnvironment), CodeNotFound)
	wantError(t, "the person", bindAs(Caller{}, "live", Overseer, SourceCall), CodeNotFound)
	wantError(t, "an unknown source", bindAs(Caller{}, "live", "RedFox", "guess"), CodeInvalid)

	own := func() (names string) {
		err := y.writeIn(t.Context(), Caller{Ancestors: above}, shared, func(ctx context.Context, s *callTx) error {
			all, err := bonded(ctx, s.tx, s.session.Key, s.p.ID)
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
	want(t, "own agents", own(), "GreenLake BlueDog RedFox ")
	err = y.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE mail_sessions SET source = 'edit' WHERE source = 'environment' OR source = 'server' AND agent_id = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "those made for edits come last", own(), "BlueDog GreenLake RedFox ")
	must(y.RetireAgent(t.Context(), Caller{}, RetireArgs{ProjectKey: shared, AgentName: "RedFox"}))(t)
	wantError(t, "a retired agent", bindAs(Caller{}, "live", "RedFox", SourceEnvironment), CodeDenied)
	want(t, "own agents without the retired", own(), "BlueDog GreenLake ")
	err = y.writeIn(t.Context(), Caller{Ancestors: above}, shared, func(ctx context.Context, s *callTx) error {
		return unbind(ctx, s.tx, s.session.Key, s.now)
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "own agents of an ended session", own(), "")
	y.register(shared, "GreenLake")
	must(y.RegisterAgent(t.Context(), Caller{Ancestors: above}, args("GreenLake")))(t)
	want(t, "own agents when it goes on", own(), "GreenLake ")
}
