package cairn

import (
	"context"
	"fmt"
	"time"

	"cairn/internal/store"
)

// DeviceStatus describes the device incarnation of the store.
type DeviceStatus struct {
	Device       string              `json:"id"`             // "" without a store
	Incarnations []store.Incarnation `json:"incarnations"`   // the incarnations after the first one, oldest first; never nil
	Note         string              `json:"note,omitempty"` // human-readable: the latest change of incarnation; "" if it is older than 30 days
}

// noteTime is how long commands show that the store has a new incarnation.
const noteTime = 30 * 24 * time.Hour

// Device returns the device incarnation of the store. It does not create a store.
func (c *Cairn) Device(ctx context.Context) (DeviceStatus, error) {
	s, err := c.Opened(ctx, false)
	if err != nil || s == nil {
		return DeviceStatus{Incarnations: []store.Incarnation{}}, err
	}
	return deviceOf(ctx, s)
}

func deviceOf(ctx context.Context, s *store.Store) (out DeviceStatus, err error) {
	out.Incarnations = []store.Incarnation{}
	if out.Device, err = s.Device(ctx); err != nil {
		return out, err
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		all, err := tx.Incarnations(ctx)
		out.Incarnations = append(out.Incarnations[:0], all...)
		return err
	})
	if n := len(out.Incarnations); n > 0 && s.Now().Sub(out.Incarnations[n-1].At) < noteTime {
		out.Note = noteOf(out.Incarnations[n-1])
	}
	return out, err
}

// noteOf returns a human-readable description of an incarnation.
func noteOf(i store.Incarnation) string {
	at := i.At.Format(time.RFC3339)
	switch i.Reason {
	case store.ReasonMoved:
		return fmt.Sprintf("this store was copied or moved from %s to %s; since %s it is a new device incarnation, and the original keeps its own",
			i.FromPath, i.Path, at)
	case store.ReasonBehind:
		since := "that the store does not have"
		if !i.LastCommon.IsZero() {
			since = "after " + i.LastCommon.Format(time.RFC3339) + " " + since
		}
		return fmt.Sprintf("the hub knew changes of this device %s: the store was restored from an older backup, or a copy of it is in use; since %s it is a new device incarnation, "+
			"and %s of its own were fetched from the hub", since, at, countedItems(i.Returned))
	case store.ReasonRestored:
		return fmt.Sprintf("this store was restored with `cairn restore`; since %s it is a new device incarnation", at)
	case store.ReasonSalvaged:
		return fmt.Sprintf("this store was salvaged, and the end of its change log may be lost; since %s it is a new device incarnation", at)
	}
	return fmt.Sprintf("since %s this store is a new device incarnation (%s)", at, i.Reason)
}

func countedItems(n int64) string {
	if n == 1 {
		return "1 change"
	}
	return fmt.Sprintf("%d changes", n)
}
