package service

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestMailHoldsOverEncryptedStores runs tests that cover most of the SQL on encrypted stores, with
// their driver and files.
func TestMailHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestTwoProjectsNeverShareASlugOrAProductID",
		"TestRetiringReleasesReservationsHidesTheAgentAndIsUndoneByRegistering", "TestWhoisTellsTheCommitsThatHoldWhatAnAgentDid",
		"TestSessionsAreBoundToTheAgentsAsWhichTheyAct", "TestProcessesThatRegisterOneNameAtOnceAreOneAgentOfOneProject",
		"TestASearchRanksFiltersAndFallsBack", "TestAnInboxIsFilteredAndNewestFirst", "TestThreadsAreSummarizedOneByOneAndTogether")
}
