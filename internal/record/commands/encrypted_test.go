package commands_test

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestCommandsHoldOverEncryptedStores runs the tests with most of the SQL again, with the
// driver and the files of encrypted stores.
func TestCommandsHoldOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestConflictIsShownAndNothingIsLost", "TestSearch", "TestSearchFindsWhatThePlainQueryFinds", "TestHistoryAndDiff", "TestActivity",
		"TestSyncReportsChangesOfOthers", "TestAsOfTakesATickOrATime", "TestListsAreInTreeOrder", "TestSaveAndClose")
}
