package retrieval_test

import (
	"testing"

	"cairn/internal/store/storetest"
)

func TestSearchHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestFiltersComeBeforeTheCap", "TestChangesAndDeletesReachTheIndexInTheirTransaction", "TestALostIndexIsRebuilt",
		"TestASearchReturnsTheLatestAndTheBestContext", "TestVectorsFindWhatWordsDoNot", "TestTheTextOfAQueryIsNeverSyntax")
}
