package service

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
)

// newPost returns a desk with a session for each agent.
func newPost(t testing.TB, c mail.Config) *desk {
	t.Helper()
	d := newDesk(t)
	for _, name := range []string{"GreenLake", "BlueDog"} {
		mailtest.Must(d.RegisterAgent(t.Context(), mail.Caller{Session: "of " + name}, agents.RegisterArgs{ProjectKey: d.key, Program: "p", Model: "m", Name: name}))(t)
	}
	d.yard = d.with(c)
	return d
}

func (d *desk) mail(importance, subject, body string, ack bool) int64 {
	d.Helper()
	return mailtest.Must(d.SendMessage(d.Context(), mail.Caller{}, messages.SendArgs{
		ProjectKey: d.key, SenderName: "GreenLake", To: []string{"BlueDog"}, Importance: importance, Subject: subject, Body: body, AckRequired: ack,
	}))(d).Deliveries[0].Payload.ID
}

func (d *desk) notices(name string, often bool) string {
	d.Helper()
	return mailtest.Must(d.Notices(d.Context(), NoticeArgs{Session: "of " + name, Event: "UserPromptSubmit", Often: often}))(d)
}

// items returns the lines between the first line and the "+N more" line.
func items(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	rest, _, _ = strings.Cut(rest, "+")
	return strings.TrimSuffix(rest, "\n")
}

func TestWhatIsToBeAcknowledgedIsToldWhenDueAndWhenOverdueToBothSides(t *testing.T) {
	t.Parallel()
	d := newPost(t, mail.Config{})
	id := d.mail("normal", "Answer me", "x", true)
	mailtest.Want(t, "new", items(d.notices("BlueDog", false)), "#1 normal ack GreenLake: Answer me")
	d.clock.Move(29 * time.Minute)
	mailtest.Want(t, "not yet", d.notices("BlueDog", false), "")
	d.clock.Move(2 * time.Minute)
	mailtest.Want(t, "due", items(d.notices("BlueDog", false)), "#1 normal ack due GreenLake: Answer me")
	mailtest.Want(t, "once", d.notices("BlueDog", false), "")
	mailtest.Want(t, "the sender", d.notices("GreenLake", false), "")
	d.clock.Move(30 * time.Minute)
	mailtest.Want(t, "overdue", items(d.notices("BlueDog", false)), "#1 normal ack overdue GreenLake: Answer me")
	mailtest.Want(t, "overdue for the sender", items(d.notices("GreenLake", false)), "#1 normal not acknowledged by BlueDog: Answer me")
	mailtest.Want(t, "each once", d.notices("BlueDog", false)+d.notices("GreenLake", false), "")

	second := d.mail("normal", "And me", "x", true)
	d.clock.Move(2 * time.Hour)
	mailtest.Want(t, "new and overdue in one line", items(d.notices("BlueDog", false)), "#2 normal ack overdue GreenLake: And me")
	mailtest.Want(t, "counts as both", d.notices("BlueDog", false), "")
	for _, id := range []int64{id, second} {
		mailtest.Must(d.AcknowledgeMessage(t.Context(), mail.Caller{}, d.key, "BlueDog", id))(t)
	}
	mailtest.Want(t, "acknowledged", d.notices("GreenLake", false), "")
	d.mail("normal", "Third", "x", true)
	mailtest.Must(d.AcknowledgeMessage(t.Context(), mail.Caller{}, d.key, "BlueDog", 3))(t)
	d.clock.Move(2 * time.Hour)
	mailtest.Want(t, "in time", d.notices("BlueDog", false)+d.notices("GreenLake", false), "")
	d.rebuilt()
}

func TestNoticesComeInOrderWithinTheirBudgetAndTheRestStaysQueued(t *testing.T) {
	t.Parallel()
	d := newPost(t, mail.Config{})
	late := d.mail("low", "late", "x", true)
	d.clock.Move(2 * time.Hour)
	d.mail("normal", "rest one", "x", false)
	d.mail("high", "high", "x", false)
	d.mail("normal", "rest two", "x", false)
	d.mail("urgent", "urgent", strings.Repeat("`````", 4)+"\n\x1b[31mred\x1b]0;title\a \u202eturned\x07", false)
	got := d.notices("BlueDog", false)
	mailtest.Want(t, "order", items(got), fmt.Sprintf("#5 urgent GreenLake: urgent\n%[1]smail id=5 untrusted\n%[2]s\nred turned\n%[1]s\n#%[3]d low ack overdue GreenLake: late\n#3 high GreenLake: high\n#2 normal GreenLake: rest one\n#4 normal GreenLake: rest two",
		strings.Repeat("`", 21), strings.Repeat("`", 20), late))
	for i := range 40 {
		d.mail("urgent", fmt.Sprintf("%d %s", i, strings.Repeat("ü", 190)), strings.Repeat("語", 400), false)
	}
	seen := map[string]int{}
	for range 40 {
		text := d.notices("BlueDog", false)
		if n := (len(text) + 3) / 4; n > 200 || text == "" {
			t.Fatalf("%d tokens: %s", n, text)
		}
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(line) > 161 && !strings.HasPrefix(line, "cairn mail") {
				t.Errorf("a line of %d characters: %s", utf8.RuneCountInString(line), line)
			}
			if id, _, ok := strings.Cut(line, " urgent GreenLake"); ok {
				seen[id]++
			}
		}
		if len(seen) == 40 {
			break
		}
	}
	mailtest.Want(t, "told", len(seen), 40)
	for id, n := range seen {
		mailtest.Want(t, id, n, 1)
	}
	mailtest.Want(t, "all told", d.notices("BlueDog", false), "")
	d.rebuilt()
}

func TestWhatComesOftenIsToldEvery30SecondsUnlessUrgent(t *testing.T) {
	t.Parallel()
	d := newPost(t, mail.Config{})
	d.mail("normal", "one", "x", false)
	mailtest.Want(t, "first", items(d.notices("BlueDog", true)), "#1 normal GreenLake: one")
	d.mail("high", "two", "x", false)
	mailtest.Want(t, "soon", d.notices("BlueDog", true), "")
	d.mail("urgent", "three", "", false)
	mailtest.Want(t, "urgent", items(d.notices("BlueDog", true)), "#3 urgent GreenLake: three")
	d.clock.Move(31 * time.Second)
	mailtest.Want(t, "later", items(d.notices("BlueDog", true)), "#2 high GreenLake: two")
}

func TestOfHooksAtOnceOneTellsEachNotice(t *testing.T) {
	t.Parallel()
	d := newPost(t, mail.Config{})
	for i := range 5 {
		d.mail("normal", fmt.Sprint("m", i), "x", false)
	}
	var group sync.WaitGroup
	texts := make([]string, 8)
	for i := range texts {
		group.Go(func() {
			texts[i], _ = d.Notices(t.Context(), NoticeArgs{Session: "of BlueDog", Event: "PostToolUse"})
		})
	}
	group.Wait()
	mailtest.Want(t, "lines", strings.Count(strings.Join(texts, ""), " normal GreenLake: m"), 5)
}

func TestASessionWithoutAgentsIsToldNothingAndHooksNoteWhoIsAtWork(t *testing.T) {
	t.Parallel()
	d := newPost(t, mail.Config{})
	changes := d.changes()
	mailtest.Want(t, "unknown", d.notices("nobody", false), "")
	active := func() (at mail.Time) {
		t.Helper()
		d.query(&at, `SELECT last_active_ts FROM mail_agents WHERE name = 'BlueDog'`)
		return at
	}
	before := active()
	d.notices("BlueDog", true)
	mailtest.Want(t, "within a minute", active(), before)
	d.clock.Move(2 * time.Minute)
	d.mail("normal", "x", "x", false)
	mailtest.Want(t, "mute", mailtest.Must(d.Notices(t.Context(), NoticeArgs{Session: "of BlueDog", Event: "PostToolUse", Mute: true}))(t), "")
	mailtest.Want(t, "at work", active() > before, true)
	mailtest.Want(t, "changes but for the message", d.changes()-changes, 1)
	mailtest.Want(t, "without a store", mailtest.Must(New(nil, mail.Config{}).Notices(t.Context(), NoticeArgs{Session: "s"}))(t), "")
}

// BenchmarkNotices reports the cost of a hook for a session without agents, for one without
// notices, and with 1,000 messages that were all shown.
func BenchmarkNotices(b *testing.B) {
	d := newPost(b, mail.Config{})
	d.register(d.key, "RedFox")
	mailtest.Must(d.RegisterAgent(b.Context(), mail.Caller{Session: "of RedFox"}, agents.RegisterArgs{ProjectKey: d.key, Program: "p", Model: "m", Name: "RedFox"}))(b)
	for range 1000 {
		d.mail("normal", "x", "x", false)
	}
	for d.notices("BlueDog", false) != "" {
		continue
	}
	for _, name := range []string{"nobody", "RedFox", "BlueDog"} {
		b.Run(name, func(b *testing.B) {
			var all []time.Duration
			for b.Loop() {
				d.clock.Move(-time.Millisecond)
				start := time.Now()
				d.notices(name, true)
				all = append(all, time.Since(start))
			}
			report(b, all)
		})
	}
}
