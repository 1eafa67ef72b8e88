package mail

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const minutes = `Hello @BlueDog and @RedFox, @BlueDog!
- first point
* second point with ` + "`internal/mail/send.go` and `plain` and `f(x)`" + `
1. third point
- first point
- [ ] write the test
- [x] read the code
[X] done, too
TODO: call Ann
We are BLOCKED on CI
todo is not an action, nor is BLOCKEDLY
> - quoted point
> TODO quoted
` + "```go\n- in a fence\nTODO in a fence `a/b`\n```\n~~~\n- in another\n```\n~~~" + `
mail a@b.example, a.@c, (@GoldHawk) @@Two @-x @9
- ` + "\x1b[31mred"

func TestASummaryIsMadeOfWhatTheLinesSay(t *testing.T) {
	t.Parallel()
	var g gist
	g.from("RedFox")
	g.from("BlueDog")
	g.from("RedFox")
	g.read(minutes)
	s := g.summary()
	wantFields(t, "summary", s, "participants", "key_points", "action_items", "total_messages", "open_actions", "done_actions", "mentions", "code_references")
	want(t, "summary", jsonText(t, s), `{"participants":["BlueDog","RedFox"],"key_points":["first point","second point with `+"`internal/mail/send.go` and `plain` and `f(x)`"+
		`","third point","[31mred"],"action_items":["write the test","read the code","done, too","TODO: call Ann","We are BLOCKED on CI"],"total_messages":0,`+
		`"open_actions":1,"done_actions":2,"mentions":[{"name":"BlueDog","count":2},{"name":"GoldHawk","count":1},{"name":"RedFox","count":1}],`+
		`"code_references":["internal/mail/send.go","f(x)"]}`)
	wantFields(t, "empty", (&gist{}).summary(), "participants", "key_points", "action_items", "total_messages", "open_actions", "done_actions", "mentions")
	var long gist
	for i := range 30 {
		long.read(fmt.Sprintf("- p%d %s\n- [ ] a%d\n@Name%d `c%d/`", i, strings.Repeat("é", 300), i, i, i))
	}
	l := long.summary()
	want(t, "at most ten of each", len(l.KeyPoints)+len(l.ActionItems)+len(l.Mentions)+len(l.CodeReferences), 40)
	want(t, "first seen first", l.ActionItems[0], "a0")
	want(t, "characters", utf8.RuneCountInString(l.KeyPoints[0]), 200)
	want(t, "open", l.OpenActions, 30)
}

func TestThreadsAreSummarizedOneByOneAndTogether(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	for i := range 5 {
		s.sent(SendArgs{Subject: fmt.Sprint("s", i), Body: fmt.Sprintf("- point %d\n@RedFox", i), ThreadID: "T"})
	}
	begun := s.sent(SendArgs{Subject: "start", Body: "TODO begin\n- point 1"})
	must(s.ReplyMessage(t.Context(), Caller{}, ReplyArgs{ProjectKey: s.app, MessageID: begun.ID, SenderName: "BlueDog", Body: "- [x] begun @RedFox @GreenLake"}))(t)
	sum := func(a SummarizeArgs) Summarized {
		t.Helper()
		a.ProjectKey = s.app
		return must(s.SummarizeThread(t.Context(), Caller{}, a))(t)
	}
	one := sum(SummarizeArgs{ThreadID: " T ", IncludeExamples: true})
	wantFields(t, "one", one, "thread_id", "summary", "examples")
	wantFields(t, "example", (*one.One.Examples)[0], "id", "subject", "from", "created_ts")
	want(t, "examples", jsonText(t, (*one.One.Examples)[2].Subject)+fmt.Sprint(len(*one.One.Examples)), `"s2"3`)
	want(t, "total", one.One.Summary.TotalMessages, 5)
	want(t, "no examples", strings.HasSuffix(jsonText(t, sum(SummarizeArgs{ThreadID: "T"})), `"examples":[]}`), true)
	two := 2
	few := sum(SummarizeArgs{ThreadID: "T", PerThreadLimit: &two}).One.Summary
	want(t, "the newest", strings.Join(few.KeyPoints, ","), "point 3,point 4")
	want(t, "total", few.TotalMessages, 5)

	decimalID := sum(SummarizeArgs{ThreadID: decimal(begun.ID)}).One.Summary
	want(t, "with its beginning", decimalID.TotalMessages, 2)
	want(t, "participants", strings.Join(decimalID.Participants, ","), "BlueDog,GreenLake")

	several := sum(SummarizeArgs{ThreadID: "T, " + decimal(begun.ID) + ",T,", IncludeExamples: true})
	wantFields(t, "several", several, "threads", "aggregate")
	wantFields(t, "thread", several.Threads[0], "thread_id", "summary")
	wantFields(t, "aggregate", several.Aggregate, "top_mentions", "action_items", "key_points")
	want(t, "threads", len(several.Threads), 2)
	want(t, "aggregate", jsonText(t, several.Aggregate), `{"top_mentions":[{"name":"RedFox","count":6},{"name":"GreenLake","count":1}],`+
		`"action_items":["TODO begin","begun @RedFox @GreenLake"],"key_points":["point 0","point 1","point 2","point 3","point 4"]}`)
	want(t, "blank", jsonText(t, sum(SummarizeArgs{ThreadID: " , "})), `{"threads":[],"aggregate":{"top_mentions":[],"action_items":[],"key_points":[]}}`)
	for code, id := range map[string]string{CodeNotFound: "none", CodeThreadID: "a/b"} {
		_, err := s.SummarizeThread(t.Context(), Caller{}, SummarizeArgs{ProjectKey: s.app, ThreadID: "T," + id})
		wantError(t, id, err, code, id)
	}
}

func TestAThreadIsPreparedInOneTransaction(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	s.sent(SendArgs{ThreadID: "T", Subject: "s", Body: "- p"})
	prepare := func(a PrepareThreadArgs) (PreparedThread, error) {
		a.ProjectKey, a.Program, a.Model = s.app, "p", "m"
		def(&a.ThreadID, "T")
		return s.MacroPrepareThread(t.Context(), Caller{}, a)
	}
	out := must(prepare(PrepareThreadArgs{AgentName: "BlueDog", IncludeBodies: true}))(t)
	wantFields(t, "prepared", out, "project", "agent", "thread", "inbox")
	wantFields(t, "project", out.Project, "id", "slug", "human_key", "created_at")
	wantFields(t, "thread", out.Thread, "thread_id", "summary", "examples", "total_messages")
	want(t, "agent stays as it was", out.Agent.Name+" "+out.Agent.Program, "BlueDog claude-code")
	want(t, "inbox", *out.Inbox[0].Body, "- p")
	want(t, "total", out.Thread.Total+len(out.Thread.Examples), 2)
	fresh := must(prepare(PrepareThreadArgs{AgentName: "GoldHawk", ThreadID: "new", NoExamples: true, TaskDescription: "t"}))(t)
	want(t, "registered", fresh.Agent.Name+" "+fresh.Agent.Program+" "+fresh.Agent.TaskDescription, "GoldHawk p t")
	want(t, "a new thread", jsonText(t, fresh.Thread.Examples)+fmt.Sprint(fresh.Thread.Total)+jsonText(t, fresh.Inbox), "[]0[]")
	want(t, "generated", must(prepare(PrepareThreadArgs{}))(t).Agent.Name != "", true)
	before := s.changes()
	zero := 0
	for code, a := range map[string]PrepareThreadArgs{
		CodeNotFound: {AgentName: "WhiteOwl", NoRegister: true}, CodeMissing: {NoRegister: true}, CodeThreadID: {ThreadID: "a/b"}, CodeLimit: {InboxLimit: &zero},
	} {
		_, err := prepare(a)
		wantError(t, code, err, code)
	}
	want(t, "changes", s.changes(), before)
	s.rebuilt()
}

func TestResourcesShowWhatThereIs(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	ctx, c := t.Context(), Caller{}
	first := s.sent(SendArgs{Subject: "a", Importance: "urgent", AckRequired: true, Body: "b", BCC: []string{"RedFox"}, To: []string{"BlueDog"}})
	must(s.ReplyMessage(ctx, c, ReplyArgs{ProjectKey: s.app, MessageID: first.ID, SenderName: "BlueDog"}))(t)
	s.clock.Move(31 * time.Minute)
	second := s.sent(SendArgs{Subject: "c", AckRequired: true})
	commit := Commit{"abc", "mail: GreenLake -> BlueDog | a", first.Created}
	s.exec("INSERT INTO archive_commits (project_key, first_seq, last_seq, hexsha, summary, authored_ts) SELECT p.project_key, m.seq, m.seq + 1, ?, ?, ? FROM mail_messages m, mail_projects p WHERE m.id = ?",
		commit.SHA, commit.Summary, commit.Authored, first.ID)

	in := must(s.Inbox(ctx, c, InboxArgs{ProjectKey: s.app, AgentName: "BlueDog"}))(t)
	wantFields(t, "message", in.Messages[0], "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from", "kind", "commit")
	want(t, "pending", in.Messages[0].Commit == nil, true)
	want(t, "commit", *in.Messages[1].Commit, commit)
	out := must(s.Outbox(ctx, c, InboxArgs{ProjectKey: s.app, AgentName: "GreenLake"}))(t)
	wantFields(t, "outbox", out, "project", "agent", "count", "messages")
	wantFields(t, "sent", out.Messages[1], "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from", "to", "cc", "bcc", "commit")
	want(t, "own blind copy", strings.Join(out.Messages[1].BCC, ","), "RedFox")
	want(t, "urgent", must(s.Outbox(ctx, c, InboxArgs{ProjectKey: s.app, AgentName: "GreenLake", UrgentOnly: true, IncludeBodies: true}))(t).Count, 1)
	m := must(s.MessageOf(ctx, c, s.app, first.ID))(t)
	wantFields(t, "message", m, "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from", "body_md")
	th := must(s.ThreadOf(ctx, c, s.app, decimal(first.ID), false))(t)
	wantFields(t, "thread", th, "project", "thread_id", "messages")
	wantFields(t, "message", th.Messages[0], "id", "project_id", "sender_id", "thread_id", "subject", "importance", "ack_required", "created_ts", "attachments", "from")
	want(t, "oldest first", th.Messages[0].Subject+th.Messages[1].Subject, "aRe: a")
	for _, id := range []int64{0, -1, 1<<63 - 1} {
		_, err := s.MessageOf(ctx, c, s.app, id)
		wantError(t, "no message", err, CodeNotFound)
	}
	for id, code := range map[string]string{"none": CodeNotFound, "99": CodeNotFound, "01": CodeNotFound, "a b": CodeThreadID, "": CodeMissing} {
		_, err := s.ThreadOf(ctx, c, s.app, id, true)
		wantError(t, id, err, code)
	}

	view := func(a ViewArgs) string {
		t.Helper()
		a.ProjectKey, a.AgentName = s.app, "BlueDog"
		v := must(s.ViewOf(ctx, c, a))(t)
		fields := []string{"project", "agent", "count", "messages"}
		if a.View == ViewAcksStale {
			fields = slices.Insert(fields, 2, "ttl_seconds")
		}
		wantFields(t, a.View, v, fields...)
		want(t, "count", v.Count, len(v.Messages))
		return ids(v.Messages)
	}
	both := decimal(second.ID) + " " + decimal(first.ID)
	hour, none, past := int64(3600), int64(0), int64(-5)
	want(t, "urgent", view(ViewArgs{View: ViewUrgentUnread}), decimal(first.ID))
	want(t, "required", view(ViewArgs{View: ViewAckRequired}), both)
	want(t, "stale", view(ViewArgs{View: ViewAcksStale}), decimal(first.ID))
	want(t, "overdue", view(ViewArgs{View: ViewAckOverdue}), "")
	want(t, "stale after an hour", view(ViewArgs{View: ViewAcksStale, TTLSeconds: &hour}), "")
	want(t, "at once", view(ViewArgs{View: ViewAckOverdue, TTLSeconds: &none}), both)
	want(t, "below 0", view(ViewArgs{View: ViewAckOverdue, TTLSeconds: &past}), both)
	must(s.AcknowledgeMessage(ctx, c, s.app, "BlueDog", first.ID))(t)
	want(t, "read", view(ViewArgs{View: ViewUrgentUnread}), "")
	want(t, "given", view(ViewArgs{View: ViewAckRequired}), decimal(second.ID))
	_, err := s.ViewOf(ctx, c, ViewArgs{ProjectKey: s.app, AgentName: "BlueDog", View: "other"})
	wantError(t, "another view", err, CodeNotFound)

	wantFields(t, "project", must(s.ProjectOf(ctx, c, s.app))(t), "id", "slug", "human_key", "created_at", "agents")
	a := must(s.AgentsOf(ctx, c, s.app))(t)
	wantFields(t, "agents", a, "project", "agents")
	want(t, "unread", fmt.Sprint(a.Agents[0].Name, a.Agents[0].Unread), "BlueDog1")
	want(t, "projects", len(must(s.Projects(ctx))(t)), 1)
	want(t, "of no store", jsonText(t, must(New(nil, Config{}).Projects(ctx))(t)), "[]")
}

func FuzzASummaryIsBoundedWhateverTheText(f *testing.F) {
	for _, seed := range []string{minutes, "```", "- ", "[ ]", "@", "@@@a", "`", "``a/`", "1) x\n2.", "\u2028- x", "~~~\n```\n", strings.Repeat("- [ ] x\n", 20)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var g gist
		g.read(text)
		s := g.summary()
		for _, list := range [][]string{s.KeyPoints, s.ActionItems, s.CodeReferences} {
			if len(list) > 10 {
				t.Errorf("%d points", len(list))
			}
			for i, p := range list {
				if p == "" || utf8.RuneCountInString(p) > 200 || strings.ContainsAny(p, "\n\r\x1b") || slices.Contains(list[:i], p) {
					t.Errorf("point %q", p)
				}
			}
		}
		if len(s.Mentions) > 10 || s.OpenActions+s.DoneActions > strings.Count(text, "]") {
			t.Errorf("%+v", s)
		}
		for _, m := range s.Mentions {
			if m.Count < 1 || !strings.Contains(text, "@"+m.Name) || strings.Count(text, "@"+m.Name) < m.Count {
				t.Errorf("mention %+v", m)
			}
		}
	})
}
