package messages

import (
	"context"
	"slices"
	"strings"
	"testing"

	"cairn/internal/mail"
	"cairn/internal/mail/mailtest"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// crowd returns mail with one project of n messages.
func crowd(t *testing.T, n int) (*mail.Kernel, *mail.Project) {
	t.Helper()
	s := storetest.Open(t, store.Config{})
	p := &mail.Project{UID: strings.Repeat("0", 20), Slug: "app", HumanKey: "/w/app", IdentityMode: mail.ModeDir, ProductID: "app", Format: 1}
	err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) (err error) {
		if err = p.Apply(ctx, tx, 0); err == nil {
			p, err = mail.ProjectByUID(ctx, tx, p.UID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mailtest.Fill(t, s, p.ID, n)
	return mail.New(s, mail.Config{}), p
}

func TestNoQueryScansATable(t *testing.T) {
	t.Parallel()
	k, _ := crowd(t, 500)
	mailtest.NoScans(t, k.Store, map[string]string{
		"items": selectItems, "unread": selectUnread, "urgent": selectUrgent, "unread and urgent": SelectUnreadUrgent, "due": SelectDue, "overdue": SelectOverdue,
		"topic": selectTopic, "received": selectReceived, "receipts": selectReceipts, "links": selectLinks, "heard": selectHeard, "heard in": selectHeardIn,
		"takes part": selectTakesPart, "patterns": selectPatterns, "last time": selectLastTime, "thread": selectOfThread,
		"in thread": selectInThread, "first": selectFirstOnes,
		"relevant": selectRelevant, "recent": selectRecent, "newest relevant": selectNewestRelevant, "newest recent": selectNewestRecent,
		"among a thread's": threadRelevant, "a sender's": senderRecent, "a project's": projectRelevant, "a thread's": countThread, "all of a sender": countSender,
		"all of a project": countProject, "matches": countAllMatches, "containing": selectContainingFirst,
		"hit": selectHit, "active": selectActive, "contacts": selectContactsOut, "contacts in": selectContactsIn, "count": SelectContactCount,
	})
}

func TestEachWayToLookIntoAnInboxHasItsIndexAndNeedsNoSorting(t *testing.T) {
	t.Parallel()
	k, _ := crowd(t, 0)
	for index, queries := range map[string][]string{
		"mail_recipients_by_agent": {selectItems}, "mail_recipients_unread": {selectUnread}, "mail_recipients_urgent": {selectUrgent},
		"mail_recipients_ack": {SelectDue, SelectOverdue}, "mail_messages_by_topic": {selectTopic},
		"mail_messages_of_project": {selectContainingRecent}, "mail_messages_of_thread": {selectOfThread},
	} {
		for _, query := range queries {
			plan := strings.Join(mailtest.Plan(t, k.Store, query), "\n")
			if !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE FOR ORDER BY") && query != selectOfThread && query != selectContainingRecent {
				t.Errorf("%s\n%s", query, plan)
			}
		}
	}
}

// The number of candidates does not change the order of the matches.
func TestASearchRanksAmongFewAsAmongAll(t *testing.T) {
	t.Parallel()
	k, p := crowd(t, rankedMatches+500)
	thousand := 1000
	for what, a := range map[string]SearchArgs{
		"a thread": {ThreadID: "big"}, "a sender": {Sender: "Bulk7"}, "a thread and a sender": {ThreadID: "big", Sender: "Bulk10", Importance: "normal"},
	} {
		for _, a.Ranking = range []string{"relevance", "recency"} {
			for _, a.Query = range []string{"deploy release", "build OR word7"} {
				a.ProjectKey, a.Limit = p.Slug, &thousand
				q, err := a.query()
				if err != nil {
					t.Fatal(err)
				}
				err = k.ReadIn(t.Context(), mail.Caller{}, p.Slug, func(ctx context.Context, in *mail.CallTx) error {
					if a.Sender != "" {
						from, err := mail.AgentByName(ctx, in.Tx, in.Project.ID, a.Sender)
						if err != nil {
							return err
						}
						q.sender = from.ID
					}
					got, err := matching(ctx, in, q, q.text)
					if err != nil {
						return err
					}
					all, err := in.Tx.Keys(ctx, q.ordered(selectRelevant, selectRecent), q.filter(in, q.text, rankedMatches, q.n)...)
					if len(all) == 0 || !slices.Equal(got, all) {
						t.Errorf("%s, %s: %d and %d of all, or another order", what, a.Ranking, len(got), len(all))
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
