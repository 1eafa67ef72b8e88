package commands_test

import (
	"fmt"
	"testing"

	"cairn/internal/record"
)

// BenchmarkPastOfManyRecords reads what the page of records shows of a past moment.
func BenchmarkPastOfManyRecords(b *testing.B) {
	const records = 40_000
	if testing.Short() {
		b.Skip("takes half a minute to fill")
	}
	book, _ := hall(b, records)
	c := record.Caller{Project: "p"}
	for _, tick := range []int{1000, records / 2, records} {
		at := fmt.Sprint("tick:", tick)
		b.Run("roots at "+at, func(b *testing.B) {
			spread(b, func(int) error {
				_, err := book.List(b.Context(), record.ListArgs{Caller: c, Roots: true, Limit: 201, At: at})
				return err
			})
		})
		b.Run("one at "+at, func(b *testing.B) {
			spread(b, func(int) error {
				_, err := book.Get(b.Context(), record.GetRefArgs{Caller: c, ID: "R500", At: at})
				return err
			})
		})
	}
}
