package replica

import (
	"context"
)

// origin returns the device under which a push is sent, and its newest change.
func (r *Replicator) origin(ctx context.Context) (device string, head DeviceHead, err error) {
	device, head.Seq, head.Hash, err = r.Store.Origin(ctx)
	return device, head, err
}

// continueFrom compares what the hub has of a device with the store. If the store does
// not have that change, it was restored from an older backup, or another copy of it is
// in use. It then goes on as a new device incarnation. Nothing is lost: what the copies
// have sent is known by its keys, and comes back with the pulls.
func (r *Replicator) continueFrom(ctx context.Context, device string, head *DeviceHead) error {
	if head == nil {
		return nil
	}
	if yes, err := r.Store.Continues(ctx, device, head.Seq, head.Hash); err != nil || yes {
		return err
	}
	common, err := r.Book.CommonPosition(ctx)
	if err != nil {
		return err
	}
	i, err := r.Store.Renew(ctx, device, common)
	if err == nil && i != nil {
		r.Log.Warn("the hub knows changes of this device that the store does not have; it goes on as a new device incarnation",
			"device", i.Device, "before", i.Before, "hub", head.Seq)
	}
	return err
}
