package service

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestMailHoldsOverEncryptedStores runs tests with most of the SQL again, over the
// driver and the files of encrypted stores.
func TestMailHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestTwoProjectsNeverShareASlugOrAProductID",
		"TestRetiringReleasesReservationsHidesTheAgentAndIsUndoneByRegistering", "TestWhoisTellsTheCommitsThatHoldWhatAnAgentDid",
		"TestSessionsAreBoundToTheAgentsAsWhichTheyAct", "TestProcessesThatRegisterOneNameAtOnceAreOneAgentOfOneProject",
		"TestASearchRanksFiltersAndFallsBack", "TestAnInboxIsFilteredAndNewestFirst", "TestThreadsAreSummarizedOneByOneAndTogether")
}
