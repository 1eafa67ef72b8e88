package cairn

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"cairn/internal/exchange"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/observation"
	"cairn/internal/observation/forget"
	"cairn/internal/project"
	"cairn/internal/store"

	"pgregory.net/rapid"
)

// mailService returns the mail service of a home.
func (h home) mailService() *service.Mail {
	h.t.Helper()
	s, err := h.Store(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	return service.New(s, mail.Config{Filter: h.ObservationConfig.Filter})
}

// mailStep performs one action on the mail. The action may be refused.
func (x *history) mailStep() {
	ctx, o := x.ctx(), x.mailService()
	key := pick(x.T, "key", x.shop, x.shop, x.works, x.folder)
	c := mail.Caller{Owner: true, Session: pick(x.T, "caller", "", "s1", "s2"), Place: project.Location{Home: x.dir}}
	me, you := x.agent("me"), x.agent("you")
	id := rapid.Int64Range(1, 30).Draw(x.T, "number")
	var err error
	switch rapid.IntRange(0, 11).Draw(x.T, "mail") {
	case 0, 1:
		_, err = o.RegisterAgent(ctx, c, agents.RegisterArgs{ProjectKey: key, Program: "claude-code", Model: pick(x.T, "model", "m1", "m2"), Name: me, TaskDescription: x.words()})
	case 2, 3, 4:
		a := messages.SendArgs{
			ProjectKey: key, SenderName: me, To: []string{you}, Subject: x.words(), Body: x.body(), Importance: pick(x.T, "importance", "", "urgent"),
			AckRequired: rapid.Bool().Draw(x.T, "ack"), ThreadID: pick(x.T, "thread", "", "FEAT-1", "feat-1", "con"), Topic: pick(x.T, "topic", "", "build"),
		}
		switch pick(x.T, "more", "", "cc", "bcc", "file", "other") {
		case "cc":
			a.CC = []string{x.agent("cc")}
		case "bcc":
			a.BCC = []string{x.agent("bcc")}
		case "file":
			name := pick(x.T, "attached", "a.png", "b.txt")
			put(x.t, filepath.Join(key, name), "\x89PNG\r\n\x1a\n"+x.words(), 0o600)
			a.AttachmentPaths = []string{name}
		case "other":
			a.To = []string{"project:" + "works" + "#" + you}
		}
		_, err = o.SendMessage(ctx, c, a)
	case 5:
		_, err = o.ReplyMessage(ctx, c, messages.ReplyArgs{ProjectKey: key, MessageID: id, SenderName: me, Body: x.body()})
	case 6:
		_, err = o.MarkMessageRead(ctx, c, key, me, id)
	case 7:
		_, err = o.AcknowledgeMessage(ctx, c, key, me, id)
	case 8:
		other := pick(x.T, "other project", "", x.shop, x.works)
		if _, err = o.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: key, FromAgent: me, ToAgent: you, ToProject: other, Reason: x.words()}); err == nil && other != "" {
			_, err = o.RespondContact(ctx, c, messages.RespondArgs{ProjectKey: other, ToAgent: you, FromAgent: me, FromProject: key, Accept: rapid.Bool().Draw(x.T, "accept")})
		}
	case 9:
		_, err = o.FileReservationPaths(ctx, c, reservations.ReserveArgs{ProjectKey: key, AgentName: me, Paths: []string{pick(x.T, "path", "src/**", "a.go", "docs/*.md")}, Reason: x.words()})
	case 10:
		_, err = o.ReleaseFileReservations(ctx, c, reservations.ReleaseArgs{ProjectKey: key, AgentName: me})
	default:
		_, err = o.RetireAgent(ctx, c, agents.RetireArgs{ProjectKey: key, AgentName: me})
	}
	x.fine(err, fault.NotFound, fault.Invalid, fault.Conflict, fault.Denied)
}

func (x *history) agent(label string) string {
	return pick(x.T, label, "GreenLake", "BlueDog", "RedFox")
}

// correspondence returns a home whose project shop has mail of every kind.
func correspondence(t testing.TB, now *atomic.Int64) home {
	t.Helper()
	h, shop := busy(t, now)
	runMail(t, h, shop, "GreenLake", "BlueDog")
	return h
}

func runMail(t testing.TB, h home, shop string, from, to string) {
	t.Helper()
	o, c, ctx := h.mailService(), mail.Caller{Owner: true, Session: "s1"}, t.Context()
	fine := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v (%s)", err, fault.As(err).Hint)
		}
	}
	for _, name := range []string{from, to, "RedFox"} {
		fine(o.RegisterAgent(ctx, c, agents.RegisterArgs{ProjectKey: shop, Program: "codex", Model: "m", Name: name}))
	}
	put(t, filepath.Join(shop, "plan.txt"), "what comes first\n", 0o600)
	put(t, filepath.Join(shop, "logo.png"), "\x89PNG\r\n\x1a\nnot really", 0o600)
	sent, err := o.SendMessage(ctx, c, messages.SendArgs{
		ProjectKey: shop, SenderName: from, To: []string{to}, BCC: []string{"RedFox"}, Subject: "Plan", Body: "---\nsee `a.go`\r\n", AckRequired: true,
		AttachmentPaths: []string{"plan.txt", "logo.png"},
	})
	fine(sent, err)
	id := sent.Deliveries[0].Payload.ID
	fine(o.ReplyMessage(ctx, c, messages.ReplyArgs{ProjectKey: shop, MessageID: id, SenderName: to, Body: "yes"}))
	fine(o.AcknowledgeMessage(ctx, c, shop, to, id))
	fine(o.RequestContact(ctx, c, messages.RequestArgs{ProjectKey: shop, FromAgent: from, ToAgent: to, Reason: "work"}))
	fine(o.FileReservationPaths(ctx, c, reservations.ReserveArgs{ProjectKey: shop, AgentName: from, Paths: []string{"src/**"}}))
	fine(o.FileReservationPaths(ctx, c, reservations.ReserveArgs{ProjectKey: shop, AgentName: from, Paths: []string{"b/**"}}))
	fine(o.ReleaseFileReservations(ctx, c, reservations.ReleaseArgs{ProjectKey: shop, AgentName: from, Paths: []string{"b/**"}}))
}

// mailLines returns the lines of mail in an export.
func mailLines(text []byte) (out []string) {
	for _, l := range body(text) {
		if strings.HasPrefix(l, `{"kind":"mail.`) {
			out = append(out, l)
		}
	}
	return out
}

func TestMailOfEveryKindIsExportedAndComesBackEqual(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source := correspondence(t, now)
	source.sound()
	one := source.export("shop")
	kinds := map[string]int{}
	for _, l := range mailLines(one) {
		var v struct{ Kind string }
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatal(err)
		}
		kinds[v.Kind]++
	}
	for kind, n := range map[string]int{
		mail.KindProject: 1, mail.KindAgent: 3, mail.KindMessage: 3, mail.KindDelivery: 1, mail.KindContact: 1, mail.KindReservation: 2, mail.KindBlob: 2,
	} {
		if kinds[kind] != n {
			t.Errorf("%d lines of %s, want %d", kinds[kind], kind, n)
		}
	}
	target := newHome(t, now, "")
	r := target.mustRestore(one)
	if r.Mail.Messages != 3 || r.Mail.NewIDs != 0 || r.Mail.Known != 0 {
		t.Errorf("restored %+v", r.Mail)
	}
	if again := target.export("shop"); slices.Compare(mailLines(again), mailLines(one)) != 0 {
		t.Errorf("the copy differs\n%s", firstDifference(one, again))
	}
	head := target.head()
	if r := target.mustRestore(one); r.Mail.Messages+len(r.Mail.Added) != 0 || target.head() != head {
		t.Errorf("importing again added %+v", r.Mail)
	}
}

// TestExportsOfTwoDevicesWithTheSameDifferInTheHeaderAlone creates the exports at different
// times. Only the header depends on the time and the device.
func TestExportsOfTwoDevicesWithTheSameDifferInTheHeaderAlone(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source := correspondence(t, now)
	first := source.export("")
	target := newHome(t, now, "")
	target.mustRestore(first)
	now.Add(3600)
	again := target.export("")
	header, rest, _ := bytes.Cut(first, []byte("\n"))
	later, same, _ := bytes.Cut(again, []byte("\n"))
	if !bytes.Equal(rest, same) {
		t.Errorf("the exports differ\n%s", firstDifference(first, again))
	}
	if bytes.Equal(header, later) {
		t.Error("the headers have the same time")
	}
	var agents []string
	for _, l := range mailLines(first) {
		var v struct{ Doc struct{ Name string } }
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(l, `{"kind":"mail.agent"`) {
			agents = append(agents, v.Doc.Name)
		}
	}
	if !slices.Equal(agents, []string{"BlueDog", "GreenLake", "RedFox"}) {
		t.Errorf("agents are in the order of their numbers, which are a store's own: %q", agents)
	}
}

// TestNumbersThatAreTakenAreGivenAnewAndThreadsFollow imports the mail of one store into a
// store that has mail with the same numbers.
func TestNumbersThatAreTakenAreGivenAnewAndThreadsFollow(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	source := correspondence(t, now)
	target := newHome(t, now, "")
	works := filepath.Join(target.dir, "works")
	put(t, filepath.Join(works, ".git", "HEAD"), "ref: refs/heads/main\n", 0o600)
	target.event(observation.Event{Kind: observation.SessionStart, Session: "s1", Cwd: works, Source: "SessionStart", Text: "startup"})
	runMail(t, target, works, "GoldHawk", "JadeOwl")
	own := target.export("works")
	r := target.mustRestore(source.export("shop"))
	if r.Mail.Messages != 3 || r.Mail.NewIDs == 0 {
		t.Errorf("restored %+v", r.Mail)
	}
	if !slices.Equal(mailLines(target.export("works")), mailLines(own)) {
		t.Error("the mail that was there has changed")
	}
	o := target.mailService()
	hits, err := o.SearchMessages(t.Context(), mail.Caller{Owner: true}, messages.SearchArgs{ProjectKey: "shop", Query: "Plan"})
	if err != nil || len(hits.Result) != 2 {
		t.Fatalf("%v: %+v", err, hits)
	}
	first := min(hits.Result[0].ID, hits.Result[1].ID)
	thread, err := o.ThreadOf(t.Context(), mail.Caller{Owner: true}, "shop", jsonNumber(first), false)
	if err != nil || len(thread.Messages) != 2 {
		t.Errorf("%v: the thread of message %d has %d messages", err, first, len(thread.Messages))
	}
	if again := target.mustRestore(source.export("shop")); again.Mail.Messages != 0 || len(again.Mail.Added) != 0 {
		t.Errorf("importing again added %+v", again.Mail)
	}
	// Messages that come back from there are recognized by their uids.
	if back := source.mustRestore(target.export("shop")); len(back.Mail.Added) != 0 {
		t.Errorf("what came back was added: %+v", back.Mail)
	}
}

func jsonNumber(n int64) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// TestTwoStoresMailOfOneProjectBecomesOne imports mail whose ordinals and numbers collide,
// but not its uids.
func TestTwoStoresMailOfOneProjectBecomesOne(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	a, b := correspondence(t, now), correspondence(t, now)
	r := b.mustRestore(strip(t, a.export("shop"), "record", "record_event"))
	if r.Mail.Messages != 3 || r.Mail.Added[mail.KindAgent] != 0 || r.Mail.Added[mail.KindContact] != 0 {
		t.Errorf("restored %+v", r.Mail)
	}
	// A project, 3 agents, 2 attachments, 6 messages, 2 deliveries, a contact, 4
	// reservations.
	if n := len(mailLines(b.export("shop"))); n != 19 {
		t.Errorf("%d lines of mail, want 19", n)
	}
}

// strip returns an export without the lines of the given kinds.
func strip(t testing.TB, text []byte, kinds ...string) []byte {
	t.Helper()
	return sealed(t, slices.DeleteFunc(body(text), func(l string) bool {
		return slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(l, `{"kind":"`+k+`"`) })
	})...)
}

func TestHostileLinesOfMailAreRefusedBeforeAnythingIsStored(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	lines := body(correspondence(t, now).export("shop"))
	at := func(kind string) int {
		return slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, `{"kind":"`+kind+`"`) })
	}
	edit := func(kind, old, text string) []string {
		out, n := slices.Clone(lines), at(kind)
		if !strings.Contains(out[n], old) {
			t.Fatalf("%q is not in %s", old, out[n])
		}
		out[n] = strings.Replace(out[n], old, text, 1)
		return out
	}
	without := func(kind string) []string { return slices.Delete(slices.Clone(lines), at(kind), at(kind)+1) }
	double := func(kind string) []string { return slices.Insert(slices.Clone(lines), at(kind), lines[at(kind)]) }
	for name, c := range map[string]struct {
		lines []string
		says  string
	}{
		"no project":            {without(mail.KindProject), "a project of mail that the file does not have"},
		"no agent":              {without(mail.KindAgent), "an agent that the file does not have"},
		"no message":            {without(mail.KindMessage), "the file does not have before it"},
		"an agent twice":        {double(mail.KindAgent), "has its number"},
		"a delivery twice":      {double(mail.KindDelivery), "for the second time"},
		"a contact twice":       {double(mail.KindContact), "for the second time"},
		"a blob twice":          {double(mail.KindBlob), "for the second time"},
		"another's blob":        {edit(mail.KindBlob, `"data":"`, `"data":"AAAA`), "are not those that its sha1 says"},
		"half a blob":           {edit(mail.KindBlob, `"bytes":`, `"bytes":9`), "not whole"},
		"an unknown product":    {edit(mail.KindProject, `"project_id":"shop"`, `"project_id":"mall"`), "a project that the file does not have"},
		"a newer project":       {edit(mail.KindProject, `"format":1`, `"format":2`), "format 2"},
		"a newer field":         {edit(mail.KindAgent, `"doc":{`, `"doc":{"mood":1,`), "does not know its field"},
		"a newer frame":         {edit(mail.KindAgent, `"doc":{`, `"mood":1,"doc":{`), "does not know its field"},
		"a bad uid":             {edit(mail.KindProject, `"project_uid":"`, `"project_uid":"../`), "project_uid"},
		"a name with a way out": {edit(mail.KindAgent, `"name":"BlueDog"`, `"name":"../../BlueDog"`), "name cannot be an agent's"},
		"a bad policy":          {edit(mail.KindAgent, `"contact_policy":"auto"`, `"contact_policy":"all"`), "contact_policy is invalid"},
		"the largest number":    {edit(mail.KindMessage, `"id":1,`, `"id":9223372036854775807,`), "out of range"},
		"a number below 1":      {edit(mail.KindMessage, `"id":1,`, `"id":0,`), "out of range"},
		"a bad thread":          {edit(mail.KindMessage, `"thread_id":null`, `"thread_id":"../x"`), "thread_id"},
		"a bad importance":      {edit(mail.KindMessage, `"importance":"normal"`, `"importance":"high!"`), "importance"},
		"a time in the future":  {edit(mail.KindMessage, `"created":"2026`, `"created":"2126`), "in the future"},
		"a time without end":    {edit(mail.KindMessage, `"created":"2026`, `"created":"9999`), "JSON of its kind"},
		"a recipient twice":     {edit(mail.KindMessage, `"to":["BlueDog"]`, `"to":["BlueDog","bluedog"]`), "twice"},
		"an unknown recipient":  {edit(mail.KindMessage, `"to":["BlueDog"]`, `"to":["GoldOwl"]`), "an agent that the file does not have"},
		"a reply to nothing":    {edit(mail.KindMessage, `"reply_to_uid":null`, `"reply_to_uid":"x"`), "replies to a message"},
		"bad attachments":       {edit(mail.KindMessage, `"attachments":[{`, `"attachments":[{"mood":1,`), "does not know its field"},
		"data of a message":     {edit(mail.KindMessage, `"doc":{`, `"data":"AAAA","doc":{`), "only attachments have data"},
		"not its recipient":     {edit(mail.KindDelivery, `"kind":"to"`, `"kind":"bcc"`), "no such recipient"},
		"a bad status":          {edit(mail.KindContact, `"status":"pending"`, `"status":"yes"`), "status"},
		"a pattern with ..":     {edit(mail.KindReservation, `"path_pattern":"src/**"`, `"path_pattern":"../**"`), "path_pattern"},
		"a half release":        {edit(mail.KindReservation, `"release_kind":null`, `"release_kind":"owner"`), "times"},
		"behind forgotten":      {append(slices.Clone(lines), `{"kind":"forgotten"}`, lines[at(mail.KindAgent)]), "number"},
		"mail before records":   {append([]string{lines[0], lines[at(mail.KindProject)]}, lines[1:]...), "must not be at this position"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := newHome(t, now, "")
			_, err := target.restore(sealed(t, c.lines...))
			if f := fault.As(err); err == nil || f.Code != exchange.CodeDamaged && f.Code != exchange.CodeNewer || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("%v, want %q", err, c.says)
			}
			if target.head() != 0 {
				t.Error("it left a trace")
			}
		})
	}
}

// TestMailInAnyOrderIsTakenOrRefusedAndStaysSound mangles exports with mail.
func TestMailInAnyOrderIsTakenOrRefusedAndStaysSound(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	whole := body(correspondence(t, now).export("shop"))
	runs := 0
	rapid.Check(t, func(r *rapid.T) {
		if runs++; runs > 2*maxHistories() {
			return
		}
		m := &mangler{T: r, lines: slices.Clone(whole)}
		for range rapid.IntRange(1, 3).Draw(r, "times") {
			m.once()
		}
		target := newHome(t, now, "")
		_, err := target.restore(sealed(t, m.lines...))
		switch {
		case err != nil && fault.KindOf(err) == fault.Internal:
			r.Fatalf("%v\n%s", err, strings.Join(m.lines, "\n"))
		case err == nil:
			target.sound()
		case target.head() != 0:
			r.Fatalf("refused (%v), and it left a trace", err)
		}
	})
}

func TestAMergeMovesMailOnlyIntoAProjectWithoutAny(t *testing.T) {
	t.Parallel()
	now := clockAt(1_770_000_000)
	h := correspondence(t, now)
	works := filepath.Join(h.dir, "works")
	put(t, filepath.Join(works, ".git", "HEAD"), "ref: refs/heads/main\n", 0o600)
	h.event(observation.Event{Kind: observation.SessionStart, Session: "s9", Cwd: works, Source: "SessionStart", Text: "startup"})
	before := mailLines(h.export("shop"))
	if err := h.Merge(t.Context(), "shop", "works"); err != nil {
		t.Fatal(err)
	}
	h.sound()
	after := mailLines(h.export("works"))
	if len(after) != len(before) || !strings.Contains(after[0], `"project_id":"works"`) || !slices.Equal(after[1:], before[1:]) {
		t.Errorf("the mail is\n%s\nwas\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	o := h.mailService()
	if got, err := o.Whois(t.Context(), mail.Caller{Owner: true}, agents.WhoisArgs{ProjectKey: "shop", AgentName: "GreenLake"}); err != nil || got.Name != "GreenLake" {
		t.Errorf("%v, %+v", err, got)
	}
	notes := filepath.Join(h.dir, "notes")
	put(t, filepath.Join(notes, ".git", "HEAD"), "ref: refs/heads/main\n", 0o600)
	runMail(t, h, notes, "GoldHawk", "JadeOwl")
	head := h.head()
	err := h.Merge(t.Context(), "notes", "works")
	if !fault.HasCode(err, mail.CodeBothHaveMail) || fault.As(err).Hint == "" || h.head() != head {
		t.Errorf("got %v", err)
	}
	h.sound()
}

// TestAPurgeOfASessionOrProjectLeavesItsMailWhole covers agents' bindings and leases, which
// refer to sessions.
func TestAPurgeOfASessionOrProjectLeavesItsMailWhole(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]forget.PurgeArgs{
		"session": {Session: "s1", Confirm: true}, "project": {Project: "shop", Confirm: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := correspondence(t, clockAt(1_770_000_000))
			before := mailLines(h.export("shop"))
			done, err := h.Purge(t.Context(), a)
			if err != nil || done.Rows == 0 {
				t.Fatalf("%v: %+v", err, done)
			}
			h.sound()
			if after := mailLines(h.export("shop")); !slices.Equal(after, before) {
				t.Errorf("the mail is\n%s\nwas\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
			}
			s, err := h.Store(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var bound int
			err = s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				return tx.Get(ctx, []any{&bound}, `SELECT count(*) FROM mail_reservations WHERE session_key NOTNULL`)
			})
			if err != nil || bound == 0 {
				t.Errorf("%v: no lease knows its session any more", err)
			}
		})
	}
}
