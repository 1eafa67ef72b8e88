package entries_test

import (
	"testing"

	"cairn/internal/store/storetest"
)

func TestEntriesHoldOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestListsArePagedInBothDirectionsWithoutGapsOrRepeats", "TestInflightToolsSeeTheRowsOfTheirCase")
}
