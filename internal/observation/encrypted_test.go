package observation

import (
	"runtime/debug"
	"slices"
	"testing"

	"cairn/internal/store/storetest"
)

// TestSuiteHoldsOverEncryptedStores runs all tests of this room again: their SQL
// over the driver and the files of encrypted stores. Under the race detector that
// takes minutes and watches nothing new: the store's own tests run again there.
func TestSuiteHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("under the race detector only the store's tests run over encrypted stores")
	}
	storetest.RunEncrypted(t)
}
