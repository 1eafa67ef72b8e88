package cairn

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
	"cairn/internal/memory"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/rules"
	"cairn/internal/record"
)

// past plays a random history of mail, records and contexts in one project.
type past struct {
	home
	*rand.Rand
	shop string
}

var pastAgents = []string{"GreenLake", "BlueDog", "RedFox"}

func newPast(t *testing.T, seed uint64) *past {
	t.Helper()
	h := newHome(t, clockAt(1_770_000_000), "")
	p := &past{home: h, Rand: rand.New(rand.NewPCG(seed, 0)), shop: filepath.Join(h.dir, "shop")}
	put(t, filepath.Join(p.shop, ".git", "HEAD"), "ref: refs/heads/main\n", 0o600)
	for _, name := range pastAgents {
		p.mail(func(ctx context.Context, o *service.Mail, c mail.Caller) error {
			_, err := o.RegisterAgent(ctx, c, agents.RegisterArgs{ProjectKey: p.shop, Program: "codex", Model: "m", Name: name})
			return err
		})
	}
	return p
}

func (p *past) one(of ...string) string { return of[p.IntN(len(of))] }

func (p *past) fine(err error) {
	p.t.Helper()
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Conflict, fault.Denied:
	default:
		if err != nil {
			p.t.Fatalf("%v (%s)", err, fault.As(err).Hint)
		}
	}
}

func (p *past) mail(do func(context.Context, *service.Mail, mail.Caller) error) {
	p.t.Helper()
	p.fine(p.Mail().Write(p.t.Context(), mail.Caller{Owner: true}, do))
}

// step performs one action. The action may be refused.
func (p *past) step() {
	p.t.Helper()
	me, you := p.one(pastAgents...), p.one(pastAgents...)
	id := int64(1 + p.IntN(60))
	switch p.IntN(20) {
	case 0, 1, 2, 3:
		p.mail(func(ctx context.Context, o *service.Mail, c mail.Caller) error {
			_, err := o.SendMessage(ctx, c, messages.SendArgs{
				ProjectKey: p.shop, SenderName: me, To: []string{you}, Subject: fmt.Sprint("subject ", p.IntN(100)), Body: "text",
				Importance: p.one("", "high", "urgent"), Topic: p.one("", "build"), AckRequired: p.IntN(2) == 0,
			})
			return err
		})
	case 4, 5, 6:
		p.mail(func(ctx context.Context, o *service.Mail, c mail.Caller) error {
			_, err := o.MarkMessageRead(ctx, c, p.shop, me, id)
			return err
		})
	case 7:
		p.mail(func(ctx context.Context, o *service.Mail, c mail.Caller) error {
			_, err := o.AcknowledgeMessage(ctx, c, p.shop, me, id)
			return err
		})
	case 8, 9, 10:
		p.mail(func(ctx context.Context, o *service.Mail, c mail.Caller) error {
			_, err := o.FileReservationPaths(ctx, c, reservations.ReserveArgs{
				ProjectKey: p.shop, AgentName: me, Paths: []string{p.one("src/**", "a.go", "docs/*.md", "b/c")}, Shared: p.IntN(2) == 0,
				TTLSeconds: new(int64(60 + p.IntN(4000))), Reason: "work",
			})
			return err
		})
	case 11:
		p.mail(func(ctx context.Context, o *service.Mail, c mail.Caller) error {
			_, err := o.RenewFileReservations(ctx, c, reservations.RenewArgs{ProjectKey: p.shop, AgentName: me})
			return err
		})
	case 12:
		p.mail(func(ctx context.Context, o *service.Mail, c mail.Caller) error {
			_, err := o.ReleaseFileReservations(ctx, c, reservations.ReleaseArgs{ProjectKey: p.shop, AgentName: me, IDs: []int64{id}})
			return err
		})
	case 13:
		p.mail(func(ctx context.Context, o *service.Mail, _ mail.Caller) error {
			_, err := o.SweepReservations(ctx)
			return err
		})
	case 14, 15, 16:
		p.fine(p.Memories().Write(p.t.Context(), p.rememberer(), func(ctx context.Context, b *memories.Service, c memory.Caller) error {
			_, _, err := b.UpdateContext(ctx, c, entries.NewDocument{MemoryID: memory.DefaultMemory, SessionID: rules.NewID(), Markdown: fmt.Sprint("state ", p.IntN(1000))})
			return err
		}))
	case 17:
		_, err := p.Records().Create(p.t.Context(), record.CreateArgs{Caller: p.author(), Type: "note", Title: fmt.Sprint("note ", p.IntN(100)), Summary: "s", Body: "b"})
		p.fine(err)
	default:
		r := fmt.Sprintf("R%03d", 1+p.IntN(20))
		if _, err := p.Records().Activate(p.t.Context(), record.ActivateArgs{Caller: p.author(), ID: r}); err != nil {
			p.fine(err)
			return
		}
		_, err := p.Records().Transition(p.t.Context(), record.TransitionArgs{Caller: p.author(), ID: r, ToState: []record.State{record.Open, record.Later}[p.IntN(2)], Reason: "so"})
		if fault.KindOf(err) != fault.Invalid {
			p.fine(err)
		}
	}
}

func (p *past) rememberer() memory.Caller { return memory.Caller{ProjectID: "shop"} }

func (p *past) author() record.Caller {
	return record.Caller{Project: "shop", SessionID: p.one("s1", "s2")}
}

// clock returns the time in human-readable form.
func (p *past) clock() string {
	p.t.Helper()
	s, err := p.Store(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return s.Now().UTC().Format(time.RFC3339Nano)
}

// state returns the results for a moment as JSON, or the present results with "". It omits
// values that are not known for the past, and markers of the past.
func (p *past) state(at string, withRecords bool) string {
	p.t.Helper()
	var all []any
	keep := func(v any, err error) error { all = append(all, v); return err }
	p.fine(p.Mail().Read(p.t.Context(), mail.Caller{Owner: true}, func(ctx context.Context, o *service.Mail, c mail.Caller) error {
		for i, a := range []messages.InboxArgs{{}, {UnreadOnly: true}, {UnreadOnly: true, Limit: new(3)}, {UrgentOnly: true, IncludeBodies: true}, {Topic: "build", UnreadOnly: true, UrgentOnly: true}} {
			a.ProjectKey, a.AgentName, a.At = p.shop, pastAgents[i%len(pastAgents)], at
			box, err := o.Inbox(ctx, c, a)
			box.At = nil
			if err := keep(box, err); err != nil {
				return err
			}
		}
		sent, err := o.Outbox(ctx, c, messages.InboxArgs{ProjectKey: p.shop, AgentName: pastAgents[0], At: at})
		sent.At = nil
		if err := keep(sent, err); err != nil {
			return err
		}
		for _, ended := range []bool{false, true} {
			list, err := o.FileReservations(ctx, c, p.shop, ended)
			if at != "" {
				then, failed := o.FileReservationsAt(ctx, c, p.shop, ended, at)
				list, err = then.Result, failed
			}
			for i := range list {
				list[i].Stale, list[i].HolderActivity = false, reservations.HolderActivity{}
			}
			if err := keep(list, err); err != nil {
				return err
			}
		}
		return nil
	}))
	p.fine(p.Memories().Read(p.t.Context(), p.rememberer(), func(ctx context.Context, b *memories.Service, c memory.Caller) error {
		if at != "" {
			d, err := b.GetContextAt(ctx, c, memory.DefaultMemory, at)
			return keep([]any{d.SessionID, d.UpdatedAt, d.Markdown}, err)
		}
		d, err := b.GetContext(ctx, c, memory.DefaultMemory)
		if fault.KindOf(err) == fault.NotFound {
			err = nil
		}
		return keep([]any{d.SessionID, d.UpdatedAt, d.Markdown}, err)
	}))
	if withRecords {
		o, err := p.Records().Overview(p.t.Context(), record.OverviewArgs{Caller: record.Caller{Project: "shop"}, At: at})
		o.At = nil
		p.fine(keep(o, err))
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// TestTheStateOf1000RandomMomentsIsAnsweredLaterAsItWasThen reads the states by time and by
// tick, over ten histories.
func TestTheStateOf1000RandomMomentsIsAnsweredLaterAsItWasThen(t *testing.T) {
	t.Parallel()
	histories := uint64(10)
	if testing.Short() { // the repeated run with the other driver
		histories = 2
	}
	for seed := range histories {
		t.Run(fmt.Sprint("history ", seed), func(t *testing.T) {
			t.Parallel()
			p := newPast(t, seed)
			type noted struct {
				at, state   string
				withRecords bool
			}
			var all []noted
			head := p.head()
			for len(all) < 100 {
				p.step()
				wrote := p.head() > head
				head = p.head()
				if n := (noted{withRecords: p.IntN(8) == 0}); p.IntN(3) == 0 {
					n.state = p.state("", n.withRecords)
					if n.at = fmt.Sprint("#", head); !wrote || p.IntN(2) == 0 {
						n.at = p.clock()
						p.now.Add(1) // a moment of records is a whole millisecond
					}
					all = append(all, n)
				}
				p.now.Add(int64([]int{0, 0, 1, 40, 900}[p.IntN(5)]))
			}
			before := p.head()
			for _, n := range all {
				if got := p.state(n.at, n.withRecords); got != n.state {
					t.Fatalf("at %s\n%s", n.at, firstDifference([]byte(n.state), []byte(got)))
				}
			}
			if p.head() != before {
				t.Error("answers about the past wrote something")
			}
		})
	}
}
