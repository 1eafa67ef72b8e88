package mail

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func ids(items []Item) (out string) {
	for _, i := range items {
		out += decimal(i.ID) + " "
	}
	return strings.TrimSpace(out)
}

func TestAnInboxIsFilteredAndNewestFirst(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	var times []Time
	for i, importance := range []string{"low", "normal", "high", "urgent", "normal", "urgent"} {
		p := s.sent(SendArgs{Importance: importance, Topic: []string{"", "build"}[i%2], Body: "b"})
		times = append(times, p.Created)
	}
	must(s.MarkMessageRead(t.Context(), Caller{}, s.app, "BlueDog", 4))(t)
	two := 2
	for what, c := range map[string]struct {
		args InboxArgs
		want string
	}{
		"all":                       {InboxArgs{}, "6 5 4 3 2 1"},
		"two":                       {InboxArgs{Limit: &two}, "6 5"},
		"unread":                    {InboxArgs{UnreadOnly: true}, "6 5 3 2 1"},
		"urgent":                    {InboxArgs{UrgentOnly: true}, "6 4 3"},
		"both":                      {InboxArgs{UrgentOnly: true, UnreadOnly: true}, "6 3"},
		"topic":                     {InboxArgs{Topic: "build"}, "6 4 2"},
		"topic unread":              {InboxArgs{Topic: "build", UnreadOnly: true}, "6 2"},
		"topic urgent":              {InboxArgs{Topic: "build", UrgentOnly: true}, "6 4"},
		"another topic":             {InboxArgs{Topic: "Build"}, ""},
		"since":                     {InboxArgs{Since: times[3].String()}, "6 5"},
		"since, with a zone":        {InboxArgs{Since: strings.Replace(times[4].String(), "+00:00", "Z", 1)}, "6"},
		"since, topic":              {InboxArgs{Since: times[3].String(), Topic: "build"}, "6"},
		"since a day to come":       {InboxArgs{Since: "2200-01-01"}, ""},
		"since a day gone, no zone": {InboxArgs{Since: "2000-01-01T00:00:00"}, "6 5 4 3 2 1"},
	} {
		c.args.ProjectKey, c.args.AgentName = s.app, "bluedog"
		got := must(s.FetchInbox(t.Context(), Caller{}, c.args))(t)
		want(t, what, ids(got), c.want)
		if got == nil || len(got) > 0 && got[0].Body != nil {
			t.Errorf("%s: %v", what, got)
		}
		c.args.IncludeBodies = true
		out := must(s.Inbox(t.Context(), Caller{}, c.args))(t)
		want(t, what, out.Count, len(got))
		wantFields(t, what, out, "project", "agent", "count", "messages")
		for i, m := range out.Messages {
			want(t, what, m.ID, got[i].ID)
			want(t, what, *m.Body, "b")
		}
	}
	zero := 0
	for code, a := range map[string]InboxArgs{
		CodeLimit: {Limit: &zero}, CodeTimestamp: {Since: "yesterday"}, CodeTopic: {Topic: "a b"}, CodeNotFound: {AgentName: "GoldHawk"},
	} {
		a.ProjectKey = s.app
		def(&a.AgentName, "BlueDog")
		_, err := s.FetchInbox(t.Context(), Caller{}, a)
		wantError(t, code, err, code)
	}
	_, err := s.FetchInbox(t.Context(), Caller{}, InboxArgs{ProjectKey: s.path("nowhere"), AgentName: "BlueDog"})
	wantError(t, "no project", err, CodeNotFound)
}

func TestReadsWriteNothing(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	p := s.sent(SendArgs{AckRequired: true, Importance: "urgent", ThreadID: "T", Body: "- [ ] do it"})
	dump := func() (text string) {
		s.query(&text, `SELECT (SELECT group_concat(message_id || ':' || agent_id || ':' || ifnull(shown_ts, '') || ':' || ifnull(read_ts, '')) FROM mail_recipients)
|| (SELECT group_concat(last_active_ts) FROM mail_agents) || (SELECT max(seq) FROM changes)`)
		return text
	}
	before := dump()
	ctx, c := t.Context(), Caller{}
	s.inboxOf("BlueDog")
	for what, err := range map[string]error{
		"inbox":    second(s.Inbox(ctx, c, InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"})),
		"outbox":   second(s.Outbox(ctx, c, InboxArgs{ProjectKey: s.app, AgentName: "GreenLake"})),
		"message":  second(s.MessageOf(ctx, c, s.app, p.ID)),
		"thread":   second(s.ThreadOf(ctx, c, s.app, "T", true)),
		"search":   second(s.SearchMessages(ctx, c, SearchArgs{ProjectKey: s.app, Query: "do"})),
		"summary":  second(s.SummarizeThread(ctx, c, SummarizeArgs{ProjectKey: s.app, ThreadID: "T"})),
		"receipt":  second(s.GetDeliveryReceipt(ctx, c, s.app, "GreenLake", p.ID)),
		"contacts": second(s.ListContacts(ctx, c, s.app, "BlueDog", "both")),
		"view":     second(s.ViewOf(ctx, c, ViewArgs{ProjectKey: s.app, AgentName: "BlueDog", View: ViewUrgentUnread})),
		"projects": second(s.Projects(ctx)),
		"project":  second(s.ProjectOf(ctx, c, s.app)),
		"agents":   second(s.AgentsOf(ctx, c, s.app)),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	want(t, "rows", dump(), before)
}

func TestReadingAndAcknowledgingCountOnceForRecipientsOnly(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	p := s.sent(SendArgs{To: []string{"BlueDog"}, BCC: []string{"RedFox"}, AckRequired: true})
	ctx, c := t.Context(), Caller{}
	ack := must(s.AcknowledgeMessage(ctx, c, s.app, "RedFox", p.ID))(t)
	want(t, "acknowledging reads", ack.Read, ack.At)
	s.clock.Move(time.Minute)
	want(t, "read after it", must(s.MarkMessageRead(ctx, c, s.app, "RedFox", p.ID))(t).At, ack.At)
	before := s.changes()
	want(t, "twice", must(s.AcknowledgeMessage(ctx, c, s.app, "RedFox", p.ID))(t), ack)
	want(t, "changes", s.changes(), before)
	for _, id := range []int64{0, -1, 1<<63 - 1, 77} {
		_, err := s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", id)
		wantError(t, decimal(id), err, CodeNotFound, "not found", `"message_id":`+decimal(id))
	}
	_, err := s.AcknowledgeMessage(ctx, c, s.app, "GreenLake", p.ID)
	wantError(t, "the sender", err, CodeNotFound)
	other := s.mkdir(s.path("other"))
	s.register(other, "BlueDog")
	_, err = s.AcknowledgeMessage(ctx, c, other, "BlueDog", p.ID)
	wantError(t, "another project's", err, CodeNotFound)
	late := s.sent(SendArgs{AckRequired: true})
	must(s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", late.ID))(t)
	must(s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", p.ID))(t)
	s.rebuilt()
}

func TestABlindCopyIsKnownToSenderAndRecipientAlone(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	s.register(s.app, "GoldHawk")
	ctx, c := t.Context(), Caller{}
	p := s.sent(SendArgs{To: []string{"BlueDog"}, CC: []string{"RedFox"}, BCC: []string{"GoldHawk"}, Subject: "plan", Body: "the plan", ThreadID: "T", AckRequired: true})
	must(s.AcknowledgeMessage(ctx, c, s.app, "GoldHawk", p.ID))(t)
	want(t, "the sender sees it", strings.Join(p.BCC, ","), "GoldHawk")
	want(t, "kind", s.inboxOf("GoldHawk")[0].Kind, "bcc")
	reply := must(s.ReplyMessage(ctx, c, ReplyArgs{ProjectKey: s.app, MessageID: p.ID, SenderName: "BlueDog", CC: []string{"RedFox"}}))(t)
	prepared := must(s.MacroPrepareThread(ctx, c, PrepareThreadArgs{ProjectKey: s.app, ThreadID: "T", Program: "p", Model: "m", AgentName: "RedFox", IncludeBodies: true}))(t)
	for what, v := range map[string]any{
		"reply": reply, "prepared": prepared, "inbox": s.inboxOf("BlueDog"), "inbox of cc": s.inboxOf("RedFox"),
		"resource":          must(s.Inbox(ctx, c, InboxArgs{ProjectKey: s.app, AgentName: "BlueDog", IncludeBodies: true}))(t),
		"message":           must(s.MessageOf(ctx, c, s.app, p.ID))(t),
		"thread":            must(s.ThreadOf(ctx, c, s.app, "T", true))(t),
		"search":            must(s.SearchMessages(ctx, c, SearchArgs{ProjectKey: s.app, Query: "plan"}))(t),
		"summary":           must(s.SummarizeThread(ctx, c, SummarizeArgs{ProjectKey: s.app, ThreadID: "T", IncludeExamples: true}))(t),
		"view":              must(s.ViewOf(ctx, c, ViewArgs{ProjectKey: s.app, AgentName: "BlueDog", View: ViewAckRequired}))(t),
		"outbox of another": must(s.Outbox(ctx, c, InboxArgs{ProjectKey: s.app, AgentName: "BlueDog", IncludeBodies: true}))(t),
	} {
		if text := jsonText(t, v); strings.Contains(text, "GoldHawk") {
			t.Errorf("%s tells of the blind copy: %s", what, text)
		}
	}
	_, err := s.GetDeliveryReceipt(ctx, c, s.app, "BlueDog", p.ID)
	wantError(t, "receipt", err, CodeDenied)
	if strings.Contains(err.Error()+jsonText(t, err), "GoldHawk") {
		t.Error(err)
	}
	hits := must(s.SearchMessages(ctx, c, SearchArgs{ProjectKey: s.app, Query: "GoldHawk"}))(t)
	want(t, "found by name", len(hits.Result), 0)
	pages, files := rendered(t, s.store)
	for path, text := range files {
		if strings.Contains(text, "GoldHawk") && !strings.HasPrefix(path, "agents/GoldHawk/") {
			t.Errorf("%s tells of it", path)
		}
	}
	for _, line := range pages.Ops {
		if strings.Contains(line, "GoldHawk") && !strings.HasPrefix(line, "agent: profile") {
			t.Errorf("a commit says %q", line)
		}
	}
}

func TestAReceiptShowsTheSenderWhatHasBecomeOfAMessage(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	s.register(s.app, "GoldHawk")
	p := s.sent(SendArgs{To: []string{"BlueDog", "GoldHawk"}, BCC: []string{"RedFox"}})
	ctx, c := t.Context(), Caller{}
	read := must(s.MarkMessageRead(ctx, c, s.app, "BlueDog", p.ID))(t)
	ack := must(s.AcknowledgeMessage(ctx, c, s.app, "RedFox", p.ID))(t)
	via := "UserPromptSubmit"
	must(0, s.writeIn(ctx, c, s.app, func(ctx context.Context, s *callTx) error {
		a, err := s.actor(ctx, "GoldHawk")
		if err != nil {
			return err
		}
		d, err := s.received(ctx, a, p.ID)
		if err != nil {
			return err
		}
		d.Shown, d.ShownVia = s.now, &via
		return s.put(ctx, d)
	}))(t)
	r := must(s.GetDeliveryReceipt(ctx, c, s.app, "GreenLake", p.ID))(t)
	wantFields(t, "receipt", r, "message_id", "recipients", "counts")
	wantFields(t, "recipient", r.Recipients[0], "agent", "kind", "status", "queued_ts", "shown_ts", "shown_via", "read_ts", "ack_ts")
	got := ""
	for _, x := range r.Recipients {
		got += x.Agent + " " + x.Kind + " " + x.Status + "; "
		want(t, "queued", x.Queued, p.Created)
	}
	want(t, "recipients", got, "BlueDog to read; GoldHawk to shown; RedFox bcc acknowledged; ")
	want(t, "counts", r.Counts, ReceiptsByState{Shown: 1, Read: 1, Acknowledged: 1})
	want(t, "read", r.Recipients[0].Read, read.At)
	want(t, "ack", r.Recipients[2].Ack, ack.At)
	want(t, "via", *r.Recipients[1].ShownVia, via)
	_, err := s.GetDeliveryReceipt(ctx, c, s.app, "GreenLake", 99)
	wantError(t, "no message", err, CodeNotFound)
	s.rebuilt()
}

func TestAProtectedInboxNeedsItsToken(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	p := s.sent(SendArgs{})
	token := must(s.RotateToken(t.Context(), Caller{Owner: true}, s.app, "BlueDog"))(t).Token
	ctx := t.Context()
	for _, c := range []Caller{{}, {Token: "x"}, {HeaderToken: "x"}} {
		for what, err := range map[string]error{
			"inbox":   second(s.FetchInbox(ctx, c, InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"})),
			"outbox":  second(s.Outbox(ctx, c, InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"})),
			"view":    second(s.ViewOf(ctx, c, ViewArgs{ProjectKey: s.app, AgentName: "BlueDog", View: ViewAckRequired})),
			"read":    second(s.MarkMessageRead(ctx, c, s.app, "BlueDog", p.ID)),
			"ack":     second(s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", p.ID)),
			"send":    second(s.SendMessage(ctx, c, SendArgs{ProjectKey: s.app, SenderName: "BlueDog", To: []string{"RedFox"}})),
			"reply":   second(s.ReplyMessage(ctx, c, ReplyArgs{ProjectKey: s.app, SenderName: "BlueDog", MessageID: p.ID})),
			"policy":  second(s.SetContactPolicy(ctx, c, s.app, "BlueDog", "open")),
			"respond": second(s.RespondContact(ctx, c, RespondArgs{ProjectKey: s.app, ToAgent: "BlueDog", FromAgent: "RedFox"})),
			"receipt": second(s.GetDeliveryReceipt(ctx, c, s.app, "BlueDog", p.ID)),
		} {
			wantError(t, what, err, CodeDenied)
		}
	}
	must(s.FetchInbox(ctx, Caller{HeaderToken: token}, InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"}))(t)
	must(s.AcknowledgeMessage(ctx, Caller{Token: token}, s.app, "BlueDog", p.ID))(t)
}

func TestGoroutinesThatSendAndAcknowledgeLoseNothing(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	const n = 20
	var wg sync.WaitGroup
	failed := make(chan error, 4*n)
	for _, name := range []string{"GreenLake", "RedFox"} {
		for range n {
			wg.Go(func() {
				out, err := s.SendMessage(t.Context(), Caller{}, SendArgs{ProjectKey: s.app, SenderName: name, To: []string{"BlueDog"}, ThreadID: "T", AckRequired: true})
				if err == nil {
					_, err = s.AcknowledgeMessage(t.Context(), Caller{}, s.app, "BlueDog", out.Deliveries[0].Payload.ID)
				}
				failed <- err
			})
		}
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	s.orderly(2 * n)
	var due int
	s.query(&due, "SELECT ack_due + unread FROM mail_agents WHERE name = 'BlueDog'")
	want(t, "due", due, 0)
	s.rebuilt()
}

// orderly checks that n messages have growing numbers, times and ordinals.
func (s *street) orderly(n int) {
	s.Helper()
	var text string
	s.query(&text, `SELECT count(*) || ' ' || count(DISTINCT created_ts) || ' ' || max(id) || ' '
|| (SELECT count(*) FROM mail_messages a JOIN mail_messages b ON b.id = a.id + 1 AND b.created_ts <= a.created_ts) || ' '
|| (SELECT count(*) FROM (SELECT strftime('%Y%m', created_ts / 1000000000, 'unixepoch') AS month FROM mail_messages
    GROUP BY month HAVING max(ordinal) <> count(*) OR count(DISTINCT ordinal) <> count(*))) FROM mail_messages`)
	want(s, "messages", text, fmt.Sprintf("%d %d %d 0 0", n, n, n))
}

// sendMany is what child processes do: ten messages from the agent of a name, each
// acknowledged.
func sendMany(ctx context.Context, o *Service, name string) error {
	storetest.Tell("ready")
	storetest.Hear(bufio.NewReader(os.Stdin))
	for range 10 {
		out, err := o.SendMessage(ctx, Caller{}, SendArgs{ProjectKey: "1", SenderName: name, To: []string{"BlueDog"}, AckRequired: true})
		if err != nil {
			return err
		}
		ack, err := o.AcknowledgeMessage(ctx, Caller{}, "1", "BlueDog", out.Deliveries[0].Payload.ID)
		again, err2 := o.AcknowledgeMessage(ctx, Caller{}, "1", "BlueDog", 1)
		if err = errors.Join(err, err2); err != nil {
			return err
		}
		storetest.Tell(fmt.Sprint(ack.MessageID, " ", again.At))
	}
	return nil
}

func TestProcessesThatSendAndAcknowledgeAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	p := s.sent(SendArgs{AckRequired: true})
	ack := must(s.AcknowledgeMessage(t.Context(), Caller{}, s.app, "BlueDog", p.ID))(t)
	var all []*storetest.Process
	for _, name := range []string{"GreenLake", "RedFox", "BlueDog"} {
		c := child(t, s.yard, "send", name)
		c.Expect(t, "ready")
		all = append(all, c)
	}
	for _, c := range all {
		c.Send("go")
	}
	var lines []string
	for _, c := range all {
		more, err := c.Wait(t)
		if err != nil {
			t.Error(err)
		}
		lines = append(lines, more...)
	}
	slices.Sort(lines)
	want(t, "acknowledged, each once", len(slices.Compact(lines)), 30)
	for _, line := range lines {
		want(t, "the first acknowledgement stays", strings.HasSuffix(line, " "+ack.At.String()), true)
	}
	s.orderly(31)
}

// arguments is how many arguments a query takes.
func arguments(query string) (n int) {
	for _, m := range regexp.MustCompile(`\?(\d*)`).FindAllStringSubmatch(query, -1) {
		if m[1] == "" {
			n++
		} else if i, _ := strconv.Atoi(m[1]); i > n {
			n = i
		}
	}
	return n
}

// Every query of an inbox, a thread, a search and a decision goes by an index, with
// or without statistics.
func TestNoQueryScansATable(t *testing.T) {
	t.Parallel()
	for _, prepare := range []string{"", "ANALYZE"} {
		s := newStreet(t, Config{})
		s.fill(500)
		if prepare != "" {
			must(0, s.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, prepare)
				return err
			}))(t)
		}
		for name, query := range map[string]string{
			"items": selectItems, "unread": selectUnread, "urgent": selectUrgent, "unread and urgent": selectUnreadUrgent, "due": selectDue, "overdue": selectOverdue,
			"topic": selectTopic, "received": selectReceived, "receipts": selectReceipts, "links": selectLinks, "heard": selectHeard, "heard in": selectHeardIn,
			"takes part": selectTakesPart, "patterns": selectPatterns, "last time": selectLastTime, "last of the month": selectLastOfMonth, "thread": selectOfThread,
			"in thread": selectInThread, "first": selectFirstOnes, "thread resource": selectThreadMessages, "outbox": selectOutbox, "urgent outbox": selectOutboxUrgent,
			"relevant": selectRelevant, "recent": selectRecent, "newest relevant": selectNewestRelevant, "newest recent": selectNewestRecent,
			"among a thread's": threadRelevant, "a sender's": senderRecent, "a project's": projectRelevant, "a thread's": countThread, "all of a sender": countSender,
			"all of a project": countProject, "matches": countAllMatches, "containing": selectContainingFirst,
			"hit": selectHit, "active": selectActive, "contacts": selectContactsOut, "contacts in": selectContactsIn, "count": selectContactCount,
			"residents": selectResidents,
		} {
			for _, line := range s.plan(query) {
				derived := strings.Contains(query, ") m\n") || strings.Contains(query, ") m ") // m is a limited subquery
				if table := scanned(line); table == "" || table == "p" || table == "m" && derived {
					continue
				}
				t.Errorf("%s (%s): %s", name, prepare, line)
			}
		}
	}
}

// scanned is the table of rows that a line of a plan goes through from end to end,
// "" for none. Projects are few; what newest, f and the like hold is limited.
func scanned(line string) string {
	rest, found := strings.CutPrefix(line, "SCAN ")
	table, how, _ := strings.Cut(rest, " ")
	if !found || strings.Contains(how, "VIRTUAL TABLE INDEX") || slices.Contains([]string{"newest", "f", "CONSTANT"}, table) || table[0] == '(' {
		return ""
	}
	return table
}

func (s *street) plan(query string) (lines []string) {
	s.Helper()
	err := s.store.Read(s.Context(), func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, "EXPLAIN QUERY PLAN "+query, make([]any, arguments(query))...)
		if err != nil {
			return err
		}
		for rows.Next() {
			var id, parent, unused int
			var line string
			if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
				return err
			}
			lines = append(lines, line)
		}
		return rows.Err()
	})
	if err != nil || len(lines) == 0 {
		s.Errorf("%s: %v", query, err)
	}
	return lines
}

func TestEachWayToLookIntoAnInboxHasItsIndexAndNeedsNoSorting(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	for index, queries := range map[string][]string{
		"mail_recipients_by_agent": {selectItems}, "mail_recipients_unread": {selectUnread}, "mail_recipients_urgent": {selectUrgent},
		"mail_recipients_ack": {selectDue, selectOverdue}, "mail_messages_by_topic": {selectTopic}, "mail_messages_by_sender": {selectOutbox},
		"mail_messages_of_project": {selectContainingRecent}, "mail_messages_by_ordinal": {selectLastOfMonth}, "mail_messages_of_thread": {selectOfThread},
	} {
		for _, query := range queries {
			plan := strings.Join(s.plan(query), "\n")
			if !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE FOR ORDER BY") && query != selectOfThread && query != selectContainingRecent {
				t.Errorf("%s\n%s", query, plan)
			}
		}
	}
}
