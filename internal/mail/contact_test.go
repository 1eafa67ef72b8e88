package mail

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/store"
)

func (s *street) policy(name, policy string) {
	s.Helper()
	must(s.SetContactPolicy(s.Context(), Caller{}, s.app, name, policy))(s)
}

func (s *street) respond(to, from string, accept bool) Response {
	s.Helper()
	return must(s.RespondContact(s.Context(), Caller{}, RespondArgs{ProjectKey: s.app, ToAgent: to, FromAgent: from, Accept: accept}))(s)
}

func (s *street) reserve(name, path string) {
	s.Helper()
	out := must(s.FileReservationPaths(s.Context(), Caller{}, ReserveArgs{ProjectKey: s.app, AgentName: name, Paths: []string{path}, Shared: true}))(s)
	if len(out.Granted) != 1 {
		s.Fatalf("%+v", out)
	}
}

// The decision of mail §6: GreenLake writes to BlueDog.
func TestTheContactDecisionTakesTheFirstRuleThatMatches(t *testing.T) {
	t.Parallel()
	const ok = ""
	careful, off := Config{NoFirstContact: true}, Config{NoContactEnforcement: true}
	day := 24 * time.Hour
	for what, c := range map[string]struct {
		config Config
		before func(s *street)
		send   SendArgs
		code   string
	}{
		"1: to oneself, who takes nothing": {careful, func(s *street) { s.policy("GreenLake", "block_all") }, SendArgs{To: []string{"GreenLake"}}, ok},
		"2: retired": {Config{}, func(s *street) {
			must(s.RetireAgent(s.Context(), Caller{}, RetireArgs{ProjectKey: s.app, AgentName: "BlueDog"}))(s)
		}, SendArgs{}, CodeContactBlocked},
		"2: block_all":             {Config{}, func(s *street) { s.policy("BlueDog", "block_all") }, SendArgs{}, CodeContactBlocked},
		"2: block_all is asked on": {off, func(s *street) { s.policy("BlueDog", "block_all") }, SendArgs{}, CodeContactBlocked},
		"2: before an approval": {Config{}, func(s *street) {
			s.respond("GreenLake", "BlueDog", true)
			s.policy("BlueDog", "block_all")
		}, SendArgs{}, CodeContactBlocked},
		"2: blocked by the recipient": {Config{}, func(s *street) { s.respond("BlueDog", "GreenLake", false); s.policy("BlueDog", "open") }, SendArgs{}, CodeContactBlocked},
		"2: a block does not end":     {Config{}, func(s *street) { s.respond("BlueDog", "GreenLake", false); s.clock.Move(400 * day) }, SendArgs{}, CodeContactBlocked},
		"2: blocking is asked off":    {off, func(s *street) { s.respond("BlueDog", "GreenLake", false) }, SendArgs{}, CodeContactBlocked},
		"3: approved":                 {careful, func(s *street) { s.policy("BlueDog", "contacts_only"); s.respond("BlueDog", "GreenLake", true) }, SendArgs{}, ok},
		"3: approved the other way":   {careful, func(s *street) { s.policy("BlueDog", "contacts_only"); s.respond("GreenLake", "BlueDog", true) }, SendArgs{}, ok},
		"3: who blocked may write":    {careful, func(s *street) { s.respond("BlueDog", "GreenLake", true); s.respond("GreenLake", "BlueDog", false) }, SendArgs{}, ok},
		"3: expired": {Config{}, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.respond("BlueDog", "GreenLake", true)
			s.clock.Move(31 * day)
		}, SendArgs{AckRequired: true, Importance: "urgent"}, CodeContactRequired},
		"4: answered in the thread": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("GreenLake", "open")
			s.sent(SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}, ThreadID: "T"})
		}, SendArgs{ThreadID: "T"}, ok},
		"4: another thread": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("GreenLake", "open")
			s.sent(SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}, ThreadID: "T"})
		}, SendArgs{ThreadID: "t"}, CodeContactRequired},
		"4: a message without a thread": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("GreenLake", "open")
			s.sent(SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}})
		}, SendArgs{ThreadID: "1"}, ok},
		"4: too long ago": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("GreenLake", "open")
			s.sent(SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}, ThreadID: "T"})
			s.clock.Move(25 * time.Hour)
		}, SendArgs{ThreadID: "T"}, CodeContactRequired},
		"4: written to others": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("RedFox", "open")
			s.sent(SendArgs{SenderName: "BlueDog", To: []string{"RedFox"}, ThreadID: "T"})
		}, SendArgs{ThreadID: "T"}, CodeContactRequired},
		"5: open": {careful, func(s *street) { s.policy("BlueDog", "open") }, SendArgs{}, ok},
		"6: they wrote to each other": {careful, func(s *street) {
			s.policy("GreenLake", "open")
			s.sent(SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}})
		}, SendArgs{}, ok},
		"6: or it to the recipient": {careful, func(s *street) {
			s.policy("BlueDog", "open")
			s.sent(SendArgs{})
			s.policy("BlueDog", "auto")
		}, SendArgs{}, ok},
		"6: contacts_only takes no acquaintance": {careful, func(s *street) {
			s.policy("BlueDog", "open")
			s.sent(SendArgs{})
			s.policy("BlueDog", "contacts_only")
		}, SendArgs{}, CodeContactRequired},
		"6: takes part in the thread": {careful, func(s *street) {
			s.policy("RedFox", "open")
			s.sent(SendArgs{SenderName: "BlueDog", To: []string{"RedFox"}, ThreadID: "T"})
			s.clock.Move(300 * day)
		}, SendArgs{ThreadID: "T"}, ok},
		"6: hidden in the thread": {careful, func(s *street) {
			s.policy("BlueDog", "open")
			s.sent(SendArgs{SenderName: "RedFox", BCC: []string{"BlueDog"}, ThreadID: "T"})
			s.policy("BlueDog", "auto")
		}, SendArgs{ThreadID: "T"}, CodeContactRequired},
		"6: overlapping reservations":     {careful, func(s *street) { s.reserve("GreenLake", "src/**"); s.reserve("BlueDog", "src/a/b.go") }, SendArgs{}, ok},
		"6: reservations overlap upwards": {careful, func(s *street) { s.reserve("GreenLake", "src/a/*.go"); s.reserve("BlueDog", "**/b.go") }, SendArgs{}, ok},
		"6: reservations apart":           {careful, func(s *street) { s.reserve("GreenLake", "src/**"); s.reserve("BlueDog", "doc/**") }, SendArgs{}, CodeContactRequired},
		"6: reservations that have ended": {careful, func(s *street) {
			s.reserve("GreenLake", "src/**")
			s.reserve("BlueDog", "src/a")
			s.clock.Move(2 * time.Hour)
		}, SendArgs{}, CodeContactRequired},
		"7: auto takes the first one": {Config{}, nil, SendArgs{}, ok},
		"7: upon request":             {careful, nil, SendArgs{AutoContact: true}, ok},
		"8: otherwise not":            {careful, nil, SendArgs{}, CodeContactRequired},
		"8: a request is no consent": {careful, func(s *street) {
			must(s.RequestContact(s.Context(), Caller{}, RequestArgs{ProjectKey: s.app, FromAgent: "RedFox", ToAgent: "BlueDog"}))(s)
		}, SendArgs{SenderName: "RedFox", ThreadID: "X"}, ok}, // but its message makes them acquainted: rule 6
		"8: contacts_only":         {Config{}, func(s *street) { s.policy("BlueDog", "contacts_only") }, SendArgs{}, CodeContactRequired},
		"contacts_only, not asked": {off, func(s *street) { s.policy("BlueDog", "contacts_only") }, SendArgs{}, ok},
		"one of two":               {Config{}, func(s *street) { s.policy("RedFox", "contacts_only") }, SendArgs{To: []string{"BlueDog"}, BCC: []string{"RedFox"}}, CodeContactRequired},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStreet(t, c.config)
			if c.before != nil {
				c.before(s)
			}
			before, messages := s.changes(), 0
			_, err := s.send(c.send)
			if c.code == ok {
				if err != nil {
					t.Error(err)
				}
				s.rebuilt()
				return
			}
			wantError(t, what, err, c.code)
			want(t, "changes", s.changes(), before)
			s.query(&messages, "SELECT count(*) FROM mail_messages WHERE sender_id = 1 AND subject = ''")
			if c.code == CodeContactBlocked && strings.Contains(err.Error()+jsonText(t, err), "BlueDog") {
				t.Errorf("it says who: %v", err)
			}
		})
	}
}

func TestARefusalNamesWhoHasToAgreeAndWhatHelps(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	s.policy("BlueDog", "contacts_only")
	_, err := s.send(SendArgs{To: []string{"RedFox", "BlueDog"}})
	wantError(t, "refused", err, CodeContactRequired, "Contact approval required for recipients: BlueDog.", `"recipients_blocked":["BlueDog"]`,
		`"auto_contact_attempted":[]`, `"remedies":["`, `"tool":"macro_contact_handshake"`, `"tool":"request_contact"`)
	want(t, "delivered", len(s.inboxOf("RedFox")), 0)

	_, err = s.send(SendArgs{To: []string{"RedFox", "BlueDog"}, AutoContact: true, IdempotencyKey: "k"})
	wantError(t, "asked", err, CodeContactRequired, `"auto_contact_attempted":["BlueDog"]`)
	want(t, "delivered", len(s.inboxOf("RedFox")), 0)
	intro := s.inboxOf("BlueDog")
	want(t, "introduced", len(intro), 1)
	want(t, "intro", intro[0].Subject+"|"+*intro[0].Body+"|"+intro[0].Importance, "Contact request from GreenLake|GreenLake requests permission to contact BlueDog.|normal")
	want(t, "intro", intro[0].AckRequired, true)
	_, err = s.send(SendArgs{AutoContact: true})
	wantError(t, "asked again", err, CodeContactRequired)
	want(t, "introduced", len(s.inboxOf("BlueDog")), 1)
	s.respond("BlueDog", "GreenLake", true)
	must(s.send(SendArgs{To: []string{"RedFox", "BlueDog"}, AutoContact: true, IdempotencyKey: "k"}))(t)
	s.rebuilt()
}

// An error while the contacts are looked at must not deliver anything.
func TestAnErrorInsideTheContactCheckDeliversNothing(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	must(s.send(SendArgs{}))(t)
	if err := s.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "ALTER TABLE mail_contacts RENAME TO mail_contacts_gone")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	before := s.changes()
	for what, a := range map[string]SendArgs{"one": {}, "several": {To: []string{"RedFox", "BlueDog"}}, "all": {Broadcast: true}, "upon request": {AutoContact: true}} {
		_, err := s.send(a)
		wantError(t, what, err, CodeDatabase, "A database error occurred.")
	}
	want(t, "changes", s.changes(), before)
	want(t, "messages", len(s.inboxOf("BlueDog")), 1)
	if err := s.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "ALTER TABLE mail_contacts_gone RENAME TO mail_contacts")
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestTheStatesOfALink(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	ttl := int64(1)
	request := func(a RequestArgs) Link {
		t.Helper()
		a.ProjectKey, a.FromAgent, a.ToAgent = s.app, "GreenLake", "BlueDog"
		return must(s.RequestContact(t.Context(), Caller{}, a))(t)
	}
	k := request(RequestArgs{Reason: "to\nplan", TTLSeconds: &ttl})
	wantFields(t, "link", k, "from", "from_project", "to", "to_project", "status", "expires_ts")
	want(t, "link", k.From+k.FromProject+k.To+k.ToProject+k.Status, "GreenLake"+s.app+"BlueDog"+s.app+"pending")
	mails := func() int { t.Helper(); return len(s.inboxOf("BlueDog")) }
	want(t, "told", *s.inboxOf("BlueDog")[0].Body, "GreenLake requests permission to contact BlueDog.\n\nto plan")
	later := request(RequestArgs{})
	want(t, "refreshed", later.Expires > k.Expires, true)
	want(t, "lives a minute at least", k.Expires >= timeOf(s.clock.Now())+59*1e9, true)
	want(t, "told once", mails(), 1)

	r := s.respond("BlueDog", "GreenLake", true)
	wantFields(t, "response", r, "from", "to", "approved", "expires_ts", "updated")
	want(t, "approved", request(RequestArgs{Reason: "again"}).Status, "approved")
	want(t, "unchanged", request(RequestArgs{}).Expires, r.Expires)
	s.clock.Move(31 * 24 * time.Hour)
	want(t, "expired", request(RequestArgs{}).Status, "pending")
	want(t, "told again", mails(), 2)

	denied := s.respond("BlueDog", "GreenLake", false)
	want(t, "denied", denied.Approved, false)
	want(t, "a denial does not end", denied.Expires, 0)
	if !strings.Contains(jsonText(t, denied), `"expires_ts":null,"updated":1`) {
		t.Error(jsonText(t, denied))
	}
	want(t, "blocked", request(RequestArgs{}).Status, "blocked")
	want(t, "not told", mails(), 2)
	created, err := s.CreateContact(t.Context(), Caller{}, CreateContactArgs{ProjectKey: s.app, AgentName: "BlueDog", Contact: "GreenLake", Reason: "sorry"})
	want(t, "created", must(created, err)(t).Status, "approved")
	want(t, "from", created.From+created.To, "GreenLakeBlueDog")

	for _, policy := range []string{"contacts_only", "open"} {
		s.policy("RedFox", policy)
	}
	must(s.RequestContact(t.Context(), Caller{}, RequestArgs{ProjectKey: s.app, FromAgent: "BlueDog", ToAgent: "RedFox"}))(t)
	s.policy("GreenLake", "block_all")
	want(t, "to one who takes nothing", must(s.RequestContact(t.Context(), Caller{}, RequestArgs{ProjectKey: s.app, FromAgent: "RedFox", ToAgent: "GreenLake"}))(t).Status, "pending")
	want(t, "not told", len(s.inboxOf("GreenLake")), 0)

	out := must(s.ListContacts(t.Context(), Caller{}, s.app, "BlueDog", ""))(t)
	wantFields(t, "listed", out[0], "to", "status", "reason", "updated_ts", "expires_ts")
	want(t, "out", len(out), 1)
	in := must(s.ListContacts(t.Context(), Caller{}, s.app, "BlueDog", "in"))(t)
	wantFields(t, "listed", in[0], "from", "status", "reason", "updated_ts", "expires_ts")
	want(t, "in", in[0].From+in[0].Reason, "GreenLakesorry")
	want(t, "both", len(must(s.ListContacts(t.Context(), Caller{}, s.app, "BlueDog", "both"))(t)), 2)
	want(t, "none", jsonText(t, must(s.ListContacts(t.Context(), Caller{}, s.app, "GreenLake", "in"))(t)[:0]), "[]")
	s.rebuilt()
}

func TestWhatIsNoContactIsRefused(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	before := s.changes()
	ctx, c := t.Context(), Caller{}
	for what, err := range map[string]error{
		"nobody to ask":       second(s.RequestContact(ctx, c, RequestArgs{ProjectKey: s.app, FromAgent: "GreenLake", ToAgent: "BleuDog", Program: "p", Model: "m"})),
		"nobody who asks":     second(s.RequestContact(ctx, c, RequestArgs{ProjectKey: s.app, FromAgent: "GoldHawk", ToAgent: "BlueDog"})),
		"not to be made":      second(s.RequestContact(ctx, c, RequestArgs{ProjectKey: s.app, FromAgent: "GoldHawk", ToAgent: "BlueDog", Program: "p", Model: "m", NoRegister: true})),
		"no project":          second(s.RequestContact(ctx, c, RequestArgs{ProjectKey: s.app, FromAgent: "GreenLake", ToAgent: "BlueDog", ToProject: "nowhere"})),
		"nobody to respond":   second(s.RespondContact(ctx, c, RespondArgs{ProjectKey: s.app, ToAgent: "GreenLake", FromAgent: "GoldHawk", Accept: true})),
		"nobody to create":    second(s.CreateContact(ctx, c, CreateContactArgs{ProjectKey: s.app, AgentName: "GreenLake", Contact: "GoldHawk"})),
		"nobody to list":      second(s.ListContacts(ctx, c, s.app, "GoldHawk", "")),
		"nobody for a policy": second(s.SetContactPolicy(ctx, c, s.app, "GoldHawk", "open")),
	} {
		wantError(t, what, err, CodeNotFound, "not found")
	}
	for what, err := range map[string]error{
		"oneself":           second(s.RequestContact(ctx, c, RequestArgs{ProjectKey: s.app, FromAgent: "GreenLake", ToAgent: "greenlake"})),
		"oneself, created":  second(s.CreateContact(ctx, c, CreateContactArgs{ProjectKey: s.app, AgentName: "GreenLake", Contact: "GreenLake"})),
		"a policy":          second(s.SetContactPolicy(ctx, c, s.app, "GreenLake", "never")),
		"a direction":       second(s.ListContacts(ctx, c, s.app, "GreenLake", "up")),
		"NUL in the reason": second(s.RequestContact(ctx, c, RequestArgs{ProjectKey: s.app, FromAgent: "GreenLake", ToAgent: "BlueDog", Reason: "\x00"})),
	} {
		wantError(t, what, err, CodeInvalid)
	}
	want(t, "changes", s.changes(), before)
	k := must(s.RequestContact(ctx, c, RequestArgs{ProjectKey: s.app, FromAgent: "GoldHawk", ToAgent: "BlueDog", Program: "p", Model: "m", TaskDescription: "t"}))(t)
	want(t, "registered", k.From, "GoldHawk")
}

func second[T any](_ T, err error) error { return err }

func TestAHandshakeIsOneTransaction(t *testing.T) {
	t.Parallel()
	hello, text := "hello", "how are you"
	for what, c := range map[string]struct {
		before   func(s *street)
		caller   func(s *street) Caller
		args     HandshakeArgs
		response bool
		welcome  bool
		intros   int
	}{
		"asked only":             {nil, nil, HandshakeArgs{}, false, false, 1},
		"accepted at once":       {nil, nil, HandshakeArgs{AutoAccept: true, WelcomeSubject: &hello, ThreadID: "T"}, true, true, 0},
		"welcomed by policy":     {nil, nil, HandshakeArgs{WelcomeBody: &text}, false, true, 1},
		"contacts_only is asked": {func(s *street) { s.policy("BlueDog", "contacts_only") }, nil, HandshakeArgs{AutoAccept: true, WelcomeBody: &text}, false, false, 1},
		"the owner accepts": {func(s *street) { s.policy("BlueDog", "contacts_only") }, func(*street) Caller { return Caller{Owner: true} },
			HandshakeArgs{AutoAccept: true, WelcomeBody: &text}, true, true, 0},
		"its token accepts": {func(s *street) { s.policy("BlueDog", "contacts_only") }, func(s *street) Caller {
			return Caller{Token: must(s.RotateToken(s.Context(), Caller{Owner: true}, s.app, "BlueDog"))(s).Token}
		}, HandshakeArgs{AutoAccept: true}, true, false, 0},
		"it stands":            {func(s *street) { s.policy("BlueDog", "contacts_only"); s.respond("BlueDog", "GreenLake", true) }, nil, HandshakeArgs{AutoAccept: true, WelcomeBody: &text}, true, true, 0},
		"a block stays":        {func(s *street) { s.respond("BlueDog", "GreenLake", false) }, nil, HandshakeArgs{AutoAccept: true, WelcomeBody: &text}, false, false, 0},
		"the requester is new": {nil, nil, HandshakeArgs{Requester: "GoldHawk", Program: "p", Model: "m", AutoAccept: true}, true, false, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStreet(t, Config{})
			if c.before != nil {
				c.before(s)
			}
			caller := Caller{}
			if c.caller != nil {
				caller = c.caller(s)
			}
			c.args.ProjectKey, c.args.Target = s.app, "BlueDog"
			def(&c.args.Requester, "GreenLake")
			out := must(s.MacroContactHandshake(t.Context(), caller, c.args))(t)
			wantFields(t, "handshake", out, "request", "response", "welcome_message")
			want(t, "response", out.Response != nil, c.response)
			want(t, "welcome", out.Welcome != nil, c.welcome)
			if c.response {
				want(t, "response", out.Response.Status, "approved")
			}
			n := 0
			for _, i := range s.inboxOf("BlueDog") {
				if strings.HasPrefix(i.Subject, "Contact request") {
					n++
				}
			}
			want(t, "asked by mail", n, c.intros)
			s.rebuilt()
		})
	}
	s := newStreet(t, Config{})
	before := s.changes()
	long := strings.Repeat("x", 2<<10)
	_, err := s.MacroContactHandshake(t.Context(), Caller{}, HandshakeArgs{ProjectKey: s.app, Requester: "GreenLake", Target: "BlueDog", WelcomeSubject: &long})
	wantError(t, "too long", err, CodeTooLarge)
	want(t, "changes", s.changes(), before)
}

// across is a street with a second project, of GreyLake and of another BlueDog.
func across(t *testing.T, c Config) (s *street, other string) {
	t.Helper()
	s = newStreet(t, c)
	other = s.mkdir(s.path("other"))
	s.register(other, "WhiteOwl")
	must(s.RegisterAgent(t.Context(), Caller{}, RegisterArgs{ProjectKey: other, Program: "codex", Model: "m2", Name: "BlueDog"}))(t)
	return s, other
}

func TestMailIntoAnotherProjectNeedsALinkAndComesFromAMirror(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{{}, {NoContactEnforcement: true}} {
		s, other := across(t, config)
		slug := s.ensure(other).Slug
		_, err := s.send(SendArgs{SenderName: "BlueDog", To: []string{"WhiteOwl@" + slug, "RedFox"}})
		wantError(t, "without a link", err, CodeContactRequired, "external recipients missing approved contact links: WhiteOwl @ "+other, `"to_project":"`+slug+`"`)
		want(t, "delivered", len(s.inboxOf("RedFox")), 0)
		_, err = s.send(SendArgs{SenderName: "BlueDog", To: []string{"WhiteOwl@" + slug}, AutoContact: true})
		wantError(t, "asked", err, CodeContactRequired, `"auto_contact_attempted":["WhiteOwl@`+slug+`"]`)

		there := func(name string) []Item {
			t.Helper()
			return must(s.FetchInbox(t.Context(), Caller{}, InboxArgs{ProjectKey: other, AgentName: name, IncludeBodies: true}))(t)
		}
		intro := there("WhiteOwl")
		want(t, "introduced", len(intro), 1)
		if mirror := intro[0].From; !strings.HasPrefix(mirror, "BlueDog-") || len(mirror) != len("BlueDog-")+4 {
			t.Errorf("it comes from %s", mirror)
		}
		must(s.RespondContact(t.Context(), Caller{}, RespondArgs{ProjectKey: other, ToAgent: "WhiteOwl", FromAgent: intro[0].From, Accept: true}))(t)
		sent := must(s.send(SendArgs{SenderName: "BlueDog", To: []string{"project:" + slug + "#WhiteOwl", "RedFox", "WhiteOwl@" + other}, BCC: []string{"GreenLake"}, Subject: "x", ThreadID: "T"}))(t)
		want(t, "deliveries", sent.Count, 2)
		want(t, "here first", sent.Deliveries[0].Project+" "+sent.Deliveries[1].Project, s.app+" "+other)
		want(t, "to", strings.Join(sent.Deliveries[0].Payload.To, ",")+" "+strings.Join(sent.Deliveries[1].Payload.To, ","), "RedFox WhiteOwl")
		want(t, "hidden there", len(sent.Deliveries[1].Payload.BCC), 0)
		want(t, "from", sent.Deliveries[0].Payload.From+" "+sent.Deliveries[1].Payload.From, "BlueDog "+intro[0].From)
		want(t, "arrived", len(there("WhiteOwl")), 2)
		want(t, "the namesake got nothing", len(there("BlueDog")), 0)

		reply := must(s.ReplyMessage(t.Context(), Caller{}, ReplyArgs{ProjectKey: other, MessageID: sent.Deliveries[1].Payload.ID, SenderName: "WhiteOwl", Body: "yes"}))(t)
		want(t, "home", reply.Deliveries[0].Project, s.app)
		home := s.inboxOf("BlueDog")
		want(t, "answer", home[0].From+" "+home[0].Subject+" "+*home[0].ThreadID, "WhiteOwl Re: x T")
		r := must(s.GetDeliveryReceipt(t.Context(), Caller{}, s.app, "BlueDog", sent.Deliveries[1].Payload.ID))(t)
		want(t, "receipt", r.Recipients[0].Agent, "WhiteOwl")
		_, err = s.GetDeliveryReceipt(t.Context(), Caller{}, s.app, "RedFox", sent.Deliveries[1].Payload.ID)
		wantError(t, "receipt of another", err, CodeNotFound)
		_, err = s.SendMessage(t.Context(), Caller{}, SendArgs{ProjectKey: other, SenderName: intro[0].From, To: []string{"WhiteOwl"}})
		wantError(t, "a mirror acting", err, CodeDenied)
		_, err = s.AcknowledgeMessage(t.Context(), Caller{}, s.app, "RedFox", sent.Deliveries[1].Payload.ID)
		wantError(t, "another project's message", err, CodeNotFound)
		all := must(s.SendMessage(t.Context(), Caller{}, SendArgs{ProjectKey: other, SenderName: "WhiteOwl", Broadcast: true}))(t)
		want(t, "a broadcast", strings.Join(all.Deliveries[0].Payload.To, ","), "BlueDog")
		out := must(s.ListContacts(t.Context(), Caller{}, s.app, "BlueDog", ""))(t)
		want(t, "listed", out[0].To, "WhiteOwl@"+slug)
		person := must(s.Overseer(t.Context(), Caller{Owner: true}, OverseerArgs{ProjectKey: s.app, To: []string{"BlueDog@" + slug}}))(t)
		want(t, "the person needs no link and is the same everywhere", person.Deliveries[0].Project+" "+person.Deliveries[0].Payload.From, other+" HumanOverseer")
		s.rebuilt()
	}
}

func TestTheMirrorOfTheSameAgentIsThatAgentUnlessItIsProtected(t *testing.T) {
	t.Parallel()
	s, other := across(t, Config{})
	s.register(other, "GreenLake") // as GreenLake of app
	must(s.RegisterAgent(t.Context(), Caller{}, RegisterArgs{ProjectKey: other, Program: "claude-code", Model: "m1", Name: "RedFox", WantToken: true}))(t)
	must(s.CreateContact(t.Context(), Caller{}, CreateContactArgs{ProjectKey: other, AgentName: "WhiteOwl", Contact: "GreenLake", ContactProject: s.app}))(t)
	must(s.CreateContact(t.Context(), Caller{}, CreateContactArgs{ProjectKey: other, AgentName: "WhiteOwl", Contact: "RedFox", ContactProject: s.app}))(t)
	want(t, "same", s.sent(SendArgs{To: []string{"WhiteOwl@" + other}}).From, "GreenLake")
	if from := s.sent(SendArgs{SenderName: "RedFox", To: []string{"WhiteOwl@" + other}}).From; !strings.HasPrefix(from, "RedFox-") {
		t.Errorf("mail of a protected agent's namesake comes from %s", from)
	}
	s.rebuilt()
}

func TestUnknownRecipientsAreRegisteredIfThatIsOn(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{RegisterRecipients: true})
	p := s.sent(SendArgs{To: []string{"goldhawk"}, CC: []string{"WhiteOwl"}})
	want(t, "to", strings.Join(slices.Concat(p.To, p.CC), ","), "GoldHawk,WhiteOwl")
	_, err := s.send(SendArgs{To: []string{"codex"}})
	wantError(t, "no name", err, CodeRecipient)
	want(t, "inbox", len(s.inboxOf("GoldHawk")), 1)
	s.rebuilt()
}
