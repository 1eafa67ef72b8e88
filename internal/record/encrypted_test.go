package record_test

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestCommandsHoldOverEncryptedStores runs tests with most of the SQL again, over
// the driver and the files of encrypted stores.
func TestCommandsHoldOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestConflictIsShownAndNothingIsLost", "TestSearch", "TestSearchFindsWhatThePlainQueryFinds", "TestHistoryAndDiff", "TestActivity",
		"TestSyncTellsWhatOthersDid", "TestAsOfTakesATickOrATime", "TestListsAreInTreeOrder", "TestSaveAndClose")
}
