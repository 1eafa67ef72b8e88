package items_test

import (
	"testing"

	"cairn/internal/store/storetest"
)

func TestTheCheckHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestEachBrokenPromiseIsFound")
}
