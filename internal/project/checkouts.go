package project

import (
	"context"

	"cairn/internal/store"
)

// CheckoutsOf returns the checkouts of a project, ordered by git directory; a folder has
// none. It includes checkouts that no longer exist.
func CheckoutsOf(ctx context.Context, tx *store.Tx, project int64) (list []Checkout, err error) {
	err = eachCheckout(ctx, tx, func(c Checkout, _ Project) error {
		list = append(list, c)
		return nil
	}, selectCheckoutsOf, project)
	return list, err
}
