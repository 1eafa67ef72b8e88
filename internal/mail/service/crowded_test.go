package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
)

// fill adds n messages to the project.
func (s *street) fill(n int) { mailtest.Fill(s, s.Store, s.ensure(s.app).ID, n) }

// BenchmarkAmongManyMessages reports the cost of calls at 100,000 messages (mail §11). cairn-bench
// checks the limits of the contract.
func BenchmarkAmongManyMessages(b *testing.B) {
	s := newStreet(b, mail.Config{})
	s.fill(100_000)
	ctx, c := b.Context(), mail.Caller{}
	run := func(name string, call func(i int) error) {
		b.Run(name, func(b *testing.B) {
			var all []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				if err := call(i); err != nil {
					b.Fatal(err)
				}
				all = append(all, time.Since(began))
			}
			report(b, all)
		})
	}
	inbox := func(a messages.InboxArgs) func(i int) error {
		return func(i int) error {
			a.ProjectKey, a.AgentName = s.app, fmt.Sprint("Bulk", i%50)
			_, err := s.FetchInbox(ctx, c, a)
			return err
		}
	}
	run("inbox", inbox(messages.InboxArgs{}))
	run("inbox-unread", inbox(messages.InboxArgs{UnreadOnly: true}))
	run("inbox-urgent", inbox(messages.InboxArgs{UrgentOnly: true, UnreadOnly: true}))
	run("inbox-bodies", inbox(messages.InboxArgs{IncludeBodies: true}))
	search := func(q string, a messages.SearchArgs) func(i int) error {
		return func(i int) error {
			a.ProjectKey, a.Query = s.app, strings.ReplaceAll(q, "#", fmt.Sprint(i%4999))
			_, err := s.SearchMessages(ctx, c, a)
			return err
		}
	}
	run("search-rare", search("word#", messages.SearchArgs{}))
	run("search-two", search("release deploy", messages.SearchArgs{}))
	run("search-two-common", search("build deploy", messages.SearchArgs{}))
	run("search-common", search("build", messages.SearchArgs{}))
	run("search-common-sender", search("build", messages.SearchArgs{Sender: "Bulk3"}))
	run("search-common-thread", search("build", messages.SearchArgs{ThreadID: "T-77"}))
	run("search-common-recency", search("build", messages.SearchArgs{Ranking: "recency"}))
	run("search-prefix", search("bu*", messages.SearchArgs{}))
	run("search-nothing", search("zzz", messages.SearchArgs{}))
	run("search-substring", search("(((uil#", messages.SearchArgs{}))
	run("summary", func(int) error {
		_, err := s.SummarizeThread(ctx, c, messages.SummarizeArgs{ProjectKey: s.app, ThreadID: "big", IncludeExamples: true})
		return err
	})
	run("thread", func(int) error {
		_, err := s.ThreadOf(ctx, c, s.app, "T-5", true)
		return err
	})
	run("read", func(i int) error {
		n := int64(4 + 4*(i%25_000)) // unread
		_, err := s.MarkMessageRead(ctx, c, s.app, fmt.Sprint("Bulk", (n*7+3)%50), n)
		return err
	})
	run("send", func(i int) error {
		_, err := s.send(messages.SendArgs{Subject: "hello", Body: "the build failed", ThreadID: "big"})
		return err
	})
	careful := s.with(mail.Config{NoFirstContact: true})
	run("send-asking", func(i int) error {
		_, err := careful.SendMessage(ctx, c, messages.SendArgs{ProjectKey: s.app, SenderName: "Bulk1", To: []string{"Bulk2"}, Subject: "hello", ThreadID: "big"})
		if fault.HasCode(err, mail.CodeContactRequired) {
			return nil
		}
		return err
	})
}
