package service

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/store"
)

func (s *street) policy(name, policy string) {
	s.Helper()
	mailtest.Must(s.SetContactPolicy(s.Context(), mail.Caller{}, s.app, name, policy))(s)
}

func (s *street) respond(to, from string, accept bool) messages.Response {
	s.Helper()
	return mailtest.Must(s.RespondContact(s.Context(), mail.Caller{}, messages.RespondArgs{ProjectKey: s.app, ToAgent: to, FromAgent: from, Accept: accept}))(s)
}

func (s *street) reserve(name, path string) {
	s.Helper()
	out := mailtest.Must(s.FileReservationPaths(s.Context(), mail.Caller{}, reservations.ReserveArgs{ProjectKey: s.app, AgentName: name, Paths: []string{path}, Shared: true}))(s)
	if len(out.Granted) != 1 {
		s.Fatalf("%+v", out)
	}
}

// TestTheContactDecisionTakesTheFirstRuleThatMatches tests the decision of mail §6. GreenLake
// writes to BlueDog.
func TestTheContactDecisionTakesTheFirstRuleThatMatches(t *testing.T) {
	t.Parallel()
	const ok = ""
	careful, off := mail.Config{NoFirstContact: true}, mail.Config{NoContactEnforcement: true}
	day := 24 * time.Hour
	for what, c := range map[string]struct {
		config mail.Config
		before func(s *street)
		send   messages.SendArgs
		code   string
	}{
		"1: to oneself, who takes nothing": {careful, func(s *street) { s.policy("GreenLake", "block_all") }, messages.SendArgs{To: []string{"GreenLake"}}, ok},
		"2: retired": {mail.Config{}, func(s *street) {
			mailtest.Must(s.RetireAgent(s.Context(), mail.Caller{}, agents.RetireArgs{ProjectKey: s.app, AgentName: "BlueDog"}))(s)
		}, messages.SendArgs{}, mail.CodeContactBlocked},
		"2: block_all":             {mail.Config{}, func(s *street) { s.policy("BlueDog", "block_all") }, messages.SendArgs{}, mail.CodeContactBlocked},
		"2: block_all is asked on": {off, func(s *street) { s.policy("BlueDog", "block_all") }, messages.SendArgs{}, mail.CodeContactBlocked},
		"2: before an approval": {mail.Config{}, func(s *street) {
			s.respond("GreenLake", "BlueDog", true)
			s.policy("BlueDog", "block_all")
		}, messages.SendArgs{}, mail.CodeContactBlocked},
		"2: blocked by the recipient": {mail.Config{}, func(s *street) { s.respond("BlueDog", "GreenLake", false); s.policy("BlueDog", "open") }, messages.SendArgs{}, mail.CodeContactBlocked},
		"2: a block does not end":     {mail.Config{}, func(s *street) { s.respond("BlueDog", "GreenLake", false); s.clock.Move(400 * day) }, messages.SendArgs{}, mail.CodeContactBlocked},
		"2: blocking is asked off":    {off, func(s *street) { s.respond("BlueDog", "GreenLake", false) }, messages.SendArgs{}, mail.CodeContactBlocked},
		"3: approved":                 {careful, func(s *street) { s.policy("BlueDog", "contacts_only"); s.respond("BlueDog", "GreenLake", true) }, messages.SendArgs{}, ok},
		"3: approved the other way":   {careful, func(s *street) { s.policy("BlueDog", "contacts_only"); s.respond("GreenLake", "BlueDog", true) }, messages.SendArgs{}, ok},
		"3: who blocked may write":    {careful, func(s *street) { s.respond("BlueDog", "GreenLake", true); s.respond("GreenLake", "BlueDog", false) }, messages.SendArgs{}, ok},
		"3: expired": {mail.Config{}, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.respond("BlueDog", "GreenLake", true)
			s.clock.Move(31 * day)
		}, messages.SendArgs{AckRequired: true, Importance: "urgent"}, mail.CodeContactRequired},
		"4: answered in the thread": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("GreenLake", "open")
			s.sent(messages.SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}, ThreadID: "T"})
		}, messages.SendArgs{ThreadID: "T"}, ok},
		"4: another thread": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("GreenLake", "open")
			s.sent(messages.SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}, ThreadID: "T"})
		}, messages.SendArgs{ThreadID: "t"}, mail.CodeContactRequired},
		"4: a message without a thread": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("GreenLake", "open")
			s.sent(messages.SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}})
		}, messages.SendArgs{ThreadID: "1"}, ok},
		"4: too long ago": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("GreenLake", "open")
			s.sent(messages.SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}, ThreadID: "T"})
			s.clock.Move(25 * time.Hour)
		}, messages.SendArgs{ThreadID: "T"}, mail.CodeContactRequired},
		"4: written to others": {careful, func(s *street) {
			s.policy("BlueDog", "contacts_only")
			s.policy("RedFox", "open")
			s.sent(messages.SendArgs{SenderName: "BlueDog", To: []string{"RedFox"}, ThreadID: "T"})
		}, messages.SendArgs{ThreadID: "T"}, mail.CodeContactRequired},
		"5: open": {careful, func(s *street) { s.policy("BlueDog", "open") }, messages.SendArgs{}, ok},
		"6: they wrote to each other": {careful, func(s *street) {
			s.policy("GreenLake", "open")
			s.sent(messages.SendArgs{SenderName: "BlueDog", To: []string{"GreenLake"}})
		}, messages.SendArgs{}, ok},
		"6: or it to the recipient": {careful, func(s *street) {
			s.policy("BlueDog", "open")
			s.sent(messages.SendArgs{})
			s.policy("BlueDog", "auto")
		}, messages.SendArgs{}, ok},
		"6: contacts_only takes no acquaintance": {careful, func(s *street) {
			s.policy("BlueDog", "open")
			s.sent(messages.SendArgs{})
			s.policy("BlueDog", "contacts_only")
		}, messages.SendArgs{}, mail.CodeContactRequired},
		"6: takes part in the thread": {careful, func(s *street) {
			s.policy("RedFox", "open")
			s.sent(messages.SendArgs{SenderName: "BlueDog", To: []string{"RedFox"}, ThreadID: "T"})
			s.clock.Move(300 * day)
		}, messages.SendArgs{ThreadID: "T"}, ok},
		"6: hidden in the thread": {careful, func(s *street) {
			s.policy("BlueDog", "open")
			s.sent(messages.SendArgs{SenderName: "RedFox", BCC: []string{"BlueDog"}, ThreadID: "T"})
			s.policy("BlueDog", "auto")
		}, messages.SendArgs{ThreadID: "T"}, mail.CodeContactRequired},
		"6: overlapping reservations":     {careful, func(s *street) { s.reserve("GreenLake", "src/**"); s.reserve("BlueDog", "src/a/b.go") }, messages.SendArgs{}, ok},
		"6: reservations overlap upwards": {careful, func(s *street) { s.reserve("GreenLake", "src/a/*.go"); s.reserve("BlueDog", "**/b.go") }, messages.SendArgs{}, ok},
		"6: reservations apart":           {careful, func(s *street) { s.reserve("GreenLake", "src/**"); s.reserve("BlueDog", "doc/**") }, messages.SendArgs{}, mail.CodeContactRequired},
		"6: reservations that have ended": {careful, func(s *street) {
			s.reserve("GreenLake", "src/**")
			s.reserve("BlueDog", "src/a")
			s.clock.Move(2 * time.Hour)
		}, messages.SendArgs{}, mail.CodeContactRequired},
		"7: auto takes the first one": {mail.Config{}, nil, messages.SendArgs{}, ok},
		"7: upon request":             {careful, nil, messages.SendArgs{AutoContact: true}, ok},
		"8: otherwise not":            {careful, nil, messages.SendArgs{}, mail.CodeContactRequired},
		"8: a request is no consent": {careful, func(s *street) {
			mailtest.Must(s.RequestContact(s.Context(), mail.Caller{}, messages.RequestArgs{ProjectKey: s.app, FromAgent: "RedFox", ToAgent: "BlueDog"}))(s)
		}, messages.SendArgs{SenderName: "RedFox", ThreadID: "X"}, ok}, // but its contact message makes them share a thread: rule 6
		"8: contacts_only":         {mail.Config{}, func(s *street) { s.policy("BlueDog", "contacts_only") }, messages.SendArgs{}, mail.CodeContactRequired},
		"contacts_only, not asked": {off, func(s *street) { s.policy("BlueDog", "contacts_only") }, messages.SendArgs{}, ok},
		"one of two":               {mail.Config{}, func(s *street) { s.policy("RedFox", "contacts_only") }, messages.SendArgs{To: []string{"BlueDog"}, BCC: []string{"RedFox"}}, mail.CodeContactRequired},
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
			mailtest.Want(t, "changes", s.changes(), before)
			s.query(&messages, "SELECT count(*) FROM mail_messages WHERE sender_id = 1 AND subject = ''")
			if c.code == mail.CodeContactBlocked && strings.Contains(err.Error()+mailtest.JSON(t, err), "BlueDog") {
				t.Errorf("it says who: %v", err)
			}
		})
	}
}

func TestARefusalNamesWhoHasToAgreeAndWhatHelps(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.policy("BlueDog", "contacts_only")
	_, err := s.send(messages.SendArgs{To: []string{"RedFox", "BlueDog"}})
	wantError(t, "refused", err, mail.CodeContactRequired, "Contact approval required for recipients: BlueDog.", `"recipients_blocked":["BlueDog"]`,
		`"auto_contact_attempted":[]`, `"remedies":["`, `"tool":"macro_contact_handshake"`, `"tool":"request_contact"`)
	mailtest.Want(t, "delivered", len(s.inboxOf("RedFox")), 0)

	_, err = s.send(messages.SendArgs{To: []string{"RedFox", "BlueDog"}, AutoContact: true, IdempotencyKey: "k"})
	wantError(t, "asked", err, mail.CodeContactRequired, `"auto_contact_attempted":["BlueDog"]`)
	mailtest.Want(t, "delivered", len(s.inboxOf("RedFox")), 0)
	intro := s.inboxOf("BlueDog")
	mailtest.Want(t, "introduced", len(intro), 1)
	mailtest.Want(t, "intro", intro[0].Subject+"|"+*intro[0].Body+"|"+intro[0].Importance, "Contact request from GreenLake|GreenLake requests permission to contact BlueDog.|normal")
	mailtest.Want(t, "intro", intro[0].AckRequired, true)
	_, err = s.send(messages.SendArgs{AutoContact: true})
	wantError(t, "asked again", err, mail.CodeContactRequired)
	mailtest.Want(t, "introduced", len(s.inboxOf("BlueDog")), 1)
	s.respond("BlueDog", "GreenLake", true)
	mailtest.Must(s.send(messages.SendArgs{To: []string{"RedFox", "BlueDog"}, AutoContact: true, IdempotencyKey: "k"}))(t)
	s.rebuilt()
}

// TestAnErrorInsideTheContactCheckDeliversNothing makes reading the contacts fail.
func TestAnErrorInsideTheContactCheckDeliversNothing(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	mailtest.Must(s.send(messages.SendArgs{}))(t)
	if err := s.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "ALTER TABLE mail_contacts RENAME TO mail_contacts_gone")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	before := s.changes()
	for what, a := range map[string]messages.SendArgs{"one": {}, "several": {To: []string{"RedFox", "BlueDog"}}, "all": {Broadcast: true}, "upon request": {AutoContact: true}} {
		_, err := s.send(a)
		wantError(t, what, err, mail.CodeDatabase, "A database error occurred.")
	}
	mailtest.Want(t, "changes", s.changes(), before)
	mailtest.Want(t, "messages", len(s.inboxOf("BlueDog")), 1)
	if err := s.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "ALTER TABLE mail_contacts_gone RENAME TO mail_contacts")
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestTheStatesOfALink(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	ttl := int64(1)
	request := func(a messages.RequestArgs) messages.Link {
		t.Helper()
		a.ProjectKey, a.FromAgent, a.ToAgent = s.app, "GreenLake", "BlueDog"
		return mailtest.Must(s.RequestContact(t.Context(), mail.Caller{}, a))(t)
	}
	k := request(messages.RequestArgs{Reason: "to\nplan", TTLSeconds: &ttl})
	mailtest.WantFields(t, "link", k, "from", "from_project", "to", "to_project", "status", "expires_ts")
	mailtest.Want(t, "link", k.From+k.FromProject+k.To+k.ToProject+k.Status, "GreenLake"+s.app+"BlueDog"+s.app+"pending")
	mails := func() int { t.Helper(); return len(s.inboxOf("BlueDog")) }
	mailtest.Want(t, "told", *s.inboxOf("BlueDog")[0].Body, "GreenLake requests permission to contact BlueDog.\n\nto plan")
	later := request(messages.RequestArgs{})
	mailtest.Want(t, "refreshed", later.Expires > k.Expires, true)
	mailtest.Want(t, "lives a minute at least", k.Expires >= mail.TimeOf(s.clock.Now())+59*1e9, true)
	mailtest.Want(t, "told once", mails(), 1)

	r := s.respond("BlueDog", "GreenLake", true)
	mailtest.WantFields(t, "response", r, "from", "to", "approved", "expires_ts", "updated")
	mailtest.Want(t, "approved", request(messages.RequestArgs{Reason: "again"}).Status, "approved")
	mailtest.Want(t, "unchanged", request(messages.RequestArgs{}).Expires, r.Expires)
	s.clock.Move(31 * 24 * time.Hour)
	mailtest.Want(t, "expired", request(messages.RequestArgs{}).Status, "pending")
	mailtest.Want(t, "told again", mails(), 2)

	denied := s.respond("BlueDog", "GreenLake", false)
	mailtest.Want(t, "denied", denied.Approved, false)
	mailtest.Want(t, "a denial does not end", denied.Expires, 0)
	if !strings.Contains(mailtest.JSON(t, denied), `"expires_ts":null,"updated":1`) {
		t.Error(mailtest.JSON(t, denied))
	}
	mailtest.Want(t, "blocked", request(messages.RequestArgs{}).Status, "blocked")
	mailtest.Want(t, "not told", mails(), 2)
	created, err := s.CreateContact(t.Context(), mail.Caller{}, messages.CreateContactArgs{ProjectKey: s.app, AgentName: "BlueDog", Contact: "GreenLake", Reason: "sorry"})
	mailtest.Want(t, "created", mailtest.Must(created, err)(t).Status, "approved")
	mailtest.Want(t, "from", created.From+created.To, "GreenLakeBlueDog")

	for _, policy := range []string{"contacts_only", "open"} {
		s.policy("RedFox", policy)
	}
	mailtest.Must(s.RequestContact(t.Context(), mail.Caller{}, messages.RequestArgs{ProjectKey: s.app, FromAgent: "BlueDog", ToAgent: "RedFox"}))(t)
	s.policy("GreenLake", "block_all")
	mailtest.Want(t, "to one who takes nothing", mailtest.Must(s.RequestContact(t.Context(), mail.Caller{}, messages.RequestArgs{ProjectKey: s.app, FromAgent: "RedFox", ToAgent: "GreenLake"}))(t).Status, "pending")
	mailtest.Want(t, "not told", len(s.inboxOf("GreenLake")), 0)

	out := mailtest.Must(s.ListContacts(t.Context(), mail.Caller{}, s.app, "BlueDog", ""))(t)
	mailtest.WantFields(t, "listed", out[0], "to", "status", "reason", "updated_ts", "expires_ts")
	mailtest.Want(t, "out", len(out), 1)
	in := mailtest.Must(s.ListContacts(t.Context(), mail.Caller{}, s.app, "BlueDog", "in"))(t)
	mailtest.WantFields(t, "listed", in[0], "from", "status", "reason", "updated_ts", "expires_ts")
	mailtest.Want(t, "in", in[0].From+in[0].Reason, "GreenLakesorry")
	mailtest.Want(t, "both", len(mailtest.Must(s.ListContacts(t.Context(), mail.Caller{}, s.app, "BlueDog", "both"))(t)), 2)
	mailtest.Want(t, "none", mailtest.JSON(t, mailtest.Must(s.ListContacts(t.Context(), mail.Caller{}, s.app, "GreenLake", "in"))(t)[:0]), "[]")
	s.rebuilt()
}

func TestWhatIsNoContactIsRefused(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	before := s.changes()
	ctx, c := t.Context(), mail.Caller{}
	for what, err := range map[string]error{
		"nobody to ask":       second(s.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: s.app, FromAgent: "GreenLake", ToAgent: "BleuDog", Program: "p", Model: "m"})),
		"nobody who asks":     second(s.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: s.app, FromAgent: "GoldHawk", ToAgent: "BlueDog"})),
		"not to be made":      second(s.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: s.app, FromAgent: "GoldHawk", ToAgent: "BlueDog", Program: "p", Model: "m", NoRegister: true})),
		"no project":          second(s.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: s.app, FromAgent: "GreenLake", ToAgent: "BlueDog", ToProject: "nowhere"})),
		"nobody to respond":   second(s.RespondContact(ctx, c, messages.RespondArgs{ProjectKey: s.app, ToAgent: "GreenLake", FromAgent: "GoldHawk", Accept: true})),
		"nobody to create":    second(s.CreateContact(ctx, c, messages.CreateContactArgs{ProjectKey: s.app, AgentName: "GreenLake", Contact: "GoldHawk"})),
		"nobody to list":      second(s.ListContacts(ctx, c, s.app, "GoldHawk", "")),
		"nobody for a policy": second(s.SetContactPolicy(ctx, c, s.app, "GoldHawk", "open")),
	} {
		wantError(t, what, err, mail.CodeNotFound, "not found")
	}
	for what, err := range map[string]error{
		"oneself":           second(s.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: s.app, FromAgent: "GreenLake", ToAgent: "greenlake"})),
		"oneself, created":  second(s.CreateContact(ctx, c, messages.CreateContactArgs{ProjectKey: s.app, AgentName: "GreenLake", Contact: "GreenLake"})),
		"a policy":          second(s.SetContactPolicy(ctx, c, s.app, "GreenLake", "never")),
		"a direction":       second(s.ListContacts(ctx, c, s.app, "GreenLake", "up")),
		"NUL in the reason": second(s.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: s.app, FromAgent: "GreenLake", ToAgent: "BlueDog", Reason: "\x00"})),
	} {
		wantError(t, what, err, mail.CodeInvalid)
	}
	mailtest.Want(t, "changes", s.changes(), before)
	k := mailtest.Must(s.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: s.app, FromAgent: "GoldHawk", ToAgent: "BlueDog", Program: "p", Model: "m", TaskDescription: "t"}))(t)
	mailtest.Want(t, "registered", k.From, "GoldHawk")
}

func second[T any](_ T, err error) error { return err }

func TestAHandshakeIsOneTransaction(t *testing.T) {
	t.Parallel()
	hello, text := "hello", "how are you"
	for what, c := range map[string]struct {
		before   func(s *street)
		caller   func(s *street) mail.Caller
		args     messages.HandshakeArgs
		response bool
		welcome  bool
		intros   int
	}{
		"asked only":             {nil, nil, messages.HandshakeArgs{}, false, false, 1},
		"accepted at once":       {nil, nil, messages.HandshakeArgs{AutoAccept: true, WelcomeSubject: &hello, ThreadID: "T"}, true, true, 0},
		"welcomed by policy":     {nil, nil, messages.HandshakeArgs{WelcomeBody: &text}, false, true, 1},
		"contacts_only is asked": {func(s *street) { s.policy("BlueDog", "contacts_only") }, nil, messages.HandshakeArgs{AutoAccept: true, WelcomeBody: &text}, false, false, 1},
		"the owner accepts": {func(s *street) { s.policy("BlueDog", "contacts_only") }, func(*street) mail.Caller { return mail.Caller{Owner: true} },
			messages.HandshakeArgs{AutoAccept: true, WelcomeBody: &text}, true, true, 0},
		"its token accepts": {func(s *street) { s.policy("BlueDog", "contacts_only") }, func(s *street) mail.Caller {
			return mail.Caller{Token: mailtest.Must(s.RotateToken(s.Context(), mail.Caller{Owner: true}, s.app, "BlueDog"))(s).Token}
		}, messages.HandshakeArgs{AutoAccept: true}, true, false, 0},
		"it stands":            {func(s *street) { s.policy("BlueDog", "contacts_only"); s.respond("BlueDog", "GreenLake", true) }, nil, messages.HandshakeArgs{AutoAccept: true, WelcomeBody: &text}, true, true, 0},
		"a block stays":        {func(s *street) { s.respond("BlueDog", "GreenLake", false) }, nil, messages.HandshakeArgs{AutoAccept: true, WelcomeBody: &text}, false, false, 0},
		"the requester is new": {nil, nil, messages.HandshakeArgs{Requester: "GoldHawk", Program: "p", Model: "m", AutoAccept: true}, true, false, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStreet(t, mail.Config{})
			if c.before != nil {
				c.before(s)
			}
			caller := mail.Caller{}
			if c.caller != nil {
				caller = c.caller(s)
			}
			c.args.ProjectKey, c.args.Target = s.app, "BlueDog"
			mail.Default(&c.args.Requester, "GreenLake")
			out := mailtest.Must(s.MacroContactHandshake(t.Context(), caller, c.args))(t)
			mailtest.WantFields(t, "handshake", out, "request", "response", "welcome_message")
			mailtest.Want(t, "response", out.Response != nil, c.response)
			mailtest.Want(t, "welcome", out.Welcome != nil, c.welcome)
			if c.response {
				mailtest.Want(t, "response", out.Response.Status, "approved")
			}
			n := 0
			for _, i := range s.inboxOf("BlueDog") {
				if strings.HasPrefix(i.Subject, "Contact request") {
					n++
				}
			}
			mailtest.Want(t, "asked by mail", n, c.intros)
			s.rebuilt()
		})
	}
	s := newStreet(t, mail.Config{})
	before := s.changes()
	long := strings.Repeat("x", 2<<10)
	_, err := s.MacroContactHandshake(t.Context(), mail.Caller{}, messages.HandshakeArgs{ProjectKey: s.app, Requester: "GreenLake", Target: "BlueDog", WelcomeSubject: &long})
	wantError(t, "too long", err, mail.CodeTooLarge)
	mailtest.Want(t, "changes", s.changes(), before)
}

// across returns a street with a second project that has the agents WhiteOwl and another BlueDog.
func across(t *testing.T, c mail.Config) (s *street, other string) {
	t.Helper()
	s = newStreet(t, c)
	other = s.mkdir(s.path("other"))
	s.register(other, "WhiteOwl")
	mailtest.Must(s.RegisterAgent(t.Context(), mail.Caller{}, agents.RegisterArgs{ProjectKey: other, Program: "codex", Model: "m2", Name: "BlueDog"}))(t)
	return s, other
}

func TestMailIntoAnotherProjectNeedsALinkAndComesFromAMirror(t *testing.T) {
	t.Parallel()
	for _, config := range []mail.Config{{}, {NoContactEnforcement: true}} {
		s, other := across(t, config)
		slug := s.ensure(other).Slug
		_, err := s.send(messages.SendArgs{SenderName: "BlueDog", To: []string{"WhiteOwl@" + slug, "RedFox"}})
		wantError(t, "without a link", err, mail.CodeContactRequired, "external recipients missing approved contact links: WhiteOwl @ "+other, `"to_project":"`+slug+`"`)
		mailtest.Want(t, "delivered", len(s.inboxOf("RedFox")), 0)
		_, err = s.send(messages.SendArgs{SenderName: "BlueDog", To: []string{"WhiteOwl@" + slug}, AutoContact: true})
		wantError(t, "asked", err, mail.CodeContactRequired, `"auto_contact_attempted":["WhiteOwl@`+slug+`"]`)

		there := func(name string) []messages.Item {
			t.Helper()
			return mailtest.Must(s.FetchInbox(t.Context(), mail.Caller{}, messages.InboxArgs{ProjectKey: other, AgentName: name, IncludeBodies: true}))(t)
		}
		intro := there("WhiteOwl")
		mailtest.Want(t, "introduced", len(intro), 1)
		if mirror := intro[0].From; !strings.HasPrefix(mirror, "BlueDog-") || len(mirror) != len("BlueDog-")+4 {
			t.Errorf("it comes from %s", mirror)
		}
		mailtest.Must(s.RespondContact(t.Context(), mail.Caller{}, messages.RespondArgs{ProjectKey: other, ToAgent: "WhiteOwl", FromAgent: intro[0].From, Accept: true}))(t)
		sent := mailtest.Must(s.send(messages.SendArgs{SenderName: "BlueDog", To: []string{"project:" + slug + "#WhiteOwl", "RedFox", "WhiteOwl@" + other}, BCC: []string{"GreenLake"}, Subject: "x", ThreadID: "T"}))(t)
		mailtest.Want(t, "deliveries", sent.Count, 2)
		mailtest.Want(t, "here first", sent.Deliveries[0].Project+" "+sent.Deliveries[1].Project, s.app+" "+other)
		mailtest.Want(t, "to", strings.Join(sent.Deliveries[0].Payload.To, ",")+" "+strings.Join(sent.Deliveries[1].Payload.To, ","), "RedFox WhiteOwl")
		mailtest.Want(t, "hidden there", len(sent.Deliveries[1].Payload.BCC), 0)
		mailtest.Want(t, "from", sent.Deliveries[0].Payload.From+" "+sent.Deliveries[1].Payload.From, "BlueDog "+intro[0].From)
		mailtest.Want(t, "arrived", len(there("WhiteOwl")), 2)
		mailtest.Want(t, "the namesake got nothing", len(there("BlueDog")), 0)

		reply := mailtest.Must(s.ReplyMessage(t.Context(), mail.Caller{}, messages.ReplyArgs{ProjectKey: other, MessageID: sent.Deliveries[1].Payload.ID, SenderName: "WhiteOwl", Body: "yes"}))(t)
		mailtest.Want(t, "home", reply.Deliveries[0].Project, s.app)
		home := s.inboxOf("BlueDog")
		mailtest.Want(t, "answer", home[0].From+" "+home[0].Subject+" "+*home[0].ThreadID, "WhiteOwl Re: x T")
		r := mailtest.Must(s.GetDeliveryReceipt(t.Context(), mail.Caller{}, s.app, "BlueDog", sent.Deliveries[1].Payload.ID))(t)
		mailtest.Want(t, "receipt", r.Recipients[0].Agent, "WhiteOwl")
		_, err = s.GetDeliveryReceipt(t.Context(), mail.Caller{}, s.app, "RedFox", sent.Deliveries[1].Payload.ID)
		wantError(t, "receipt of another", err, mail.CodeNotFound)
		_, err = s.SendMessage(t.Context(), mail.Caller{}, messages.SendArgs{ProjectKey: other, SenderName: intro[0].From, To: []string{"WhiteOwl"}})
		wantError(t, "a mirror acting", err, mail.CodeDenied)
		_, err = s.AcknowledgeMessage(t.Context(), mail.Caller{}, s.app, "RedFox", sent.Deliveries[1].Payload.ID)
		wantError(t, "another project's message", err, mail.CodeNotFound)
		all := mailtest.Must(s.SendMessage(t.Context(), mail.Caller{}, messages.SendArgs{ProjectKey: other, SenderName: "WhiteOwl", Broadcast: true}))(t)
		mailtest.Want(t, "a broadcast", strings.Join(all.Deliveries[0].Payload.To, ","), "BlueDog")
		out := mailtest.Must(s.ListContacts(t.Context(), mail.Caller{}, s.app, "BlueDog", ""))(t)
		mailtest.Want(t, "listed", out[0].To, "WhiteOwl@"+slug)
		person := mailtest.Must(s.Overseer(t.Context(), mail.Caller{Owner: true}, messages.OverseerArgs{ProjectKey: s.app, To: []string{"BlueDog@" + slug}}))(t)
		mailtest.Want(t, "the person needs no link and is the same everywhere", person.Deliveries[0].Project+" "+person.Deliveries[0].Payload.From, other+" HumanOverseer")
		s.rebuilt()
	}
}

func TestTheMirrorOfTheSameAgentIsThatAgentUnlessItIsProtected(t *testing.T) {
	t.Parallel()
	s, other := across(t, mail.Config{})
	s.register(other, "GreenLake") // with the program and model of GreenLake in app
	mailtest.Must(s.RegisterAgent(t.Context(), mail.Caller{}, agents.RegisterArgs{ProjectKey: other, Program: "claude-code", Model: "m1", Name: "RedFox", WantToken: true}))(t)
	mailtest.Must(s.CreateContact(t.Context(), mail.Caller{}, messages.CreateContactArgs{ProjectKey: other, AgentName: "WhiteOwl", Contact: "GreenLake", ContactProject: s.app}))(t)
	mailtest.Must(s.CreateContact(t.Context(), mail.Caller{}, messages.CreateContactArgs{ProjectKey: other, AgentName: "WhiteOwl", Contact: "RedFox", ContactProject: s.app}))(t)
	mailtest.Want(t, "same", s.sent(messages.SendArgs{To: []string{"WhiteOwl@" + other}}).From, "GreenLake")
	if from := s.sent(messages.SendArgs{SenderName: "RedFox", To: []string{"WhiteOwl@" + other}}).From; !strings.HasPrefix(from, "RedFox-") {
		t.Errorf("mail of a protected agent's namesake comes from %s", from)
	}
	s.rebuilt()
}

func TestUnknownRecipientsAreRegisteredIfThatIsOn(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{RegisterRecipients: true})
	p := s.sent(messages.SendArgs{To: []string{"goldhawk"}, CC: []string{"WhiteOwl"}})
	mailtest.Want(t, "to", strings.Join(slices.Concat(p.To, p.CC), ","), "GoldHawk,WhiteOwl")
	_, err := s.send(messages.SendArgs{To: []string{"codex"}})
	wantError(t, "no name", err, mail.CodeRecipient)
	mailtest.Want(t, "inbox", len(s.inboxOf("GoldHawk")), 1)
	s.rebuilt()
}
