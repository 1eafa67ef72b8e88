package replication_test

import (
	"testing"

	"cairn/internal/store/storetest"
)

func TestReplicationHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestTwoDevicesSeeEachOther", "TestRetentionTakesWhatTheHubHasAndLeavesTheRest")
}
