package project

import (
	"context"

	"cairn/internal/store"
)

// CheckoutsOf returns the checkouts of a project, by their git directories; none for a
// folder. A checkout that is gone is listed, too.
func CheckoutsOf(ctx context.Context, tx *store.Tx, project int64) (list []Checkout, err error) {
	err = eachCheckout(ctx, tx, func(c Checkout, _ Project) error {
		list = append(list, c)
		return nil
	}, selectCheckoutsOf, project)
	return list, err
}
