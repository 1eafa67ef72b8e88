package mail

import (
	"strings"
	"testing"

	"cairn/internal/mail/mailtest"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

func TestTheOrdinalOfAMonthIsFoundByItsIndex(t *testing.T) {
	t.Parallel()
	plan := strings.Join(mailtest.Plan(t, storetest.Open(t, store.Config{}), selectLastOfMonth), "\n")
	if !strings.Contains(plan, "mail_messages_by_ordinal") {
		t.Error(plan)
	}
}
