package contents_test

import (
	"testing"

	"cairn/internal/memory/contents"
	"cairn/internal/memory/memorytest"
)

func TestHotStatementsSearchByAnIndexAndDoNotSort(t *testing.T) {
	t.Parallel()
	memorytest.NoScans(t, contents.HotStatements)
}
