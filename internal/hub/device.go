package hub

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"cairn/internal/hub/database"
	"cairn/internal/replica"
)

// raiseDevice keeps the highest head of a device. The numbers have 20 digits, so they sort
// correctly as text. If two copies of a store send heads with the same number, the first
// stays.
const raiseDevice = `INSERT INTO hub_meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
WHERE substr(excluded.value, 1, 20) > substr(hub_meta.value, 1, 20)`

// deviceName returns the name of a user's device in hub_meta.
func deviceName(tenant, device string) string { return database.MetaDevice + tenant + ":" + device }

// deviceHead returns the highest head that a user's device has sent; nil if there is none.
func (h *Hub) deviceHead(ctx context.Context, tenant, device string) (*replica.DeviceHead, error) {
	if !isToken(device, replica.MaxDeviceID) {
		return nil, nil
	}
	var text string
	ok, err := h.db.Writing().One(ctx, database.SelectMeta, []any{deviceName(tenant, device)}, &text)
	if err != nil || !ok {
		return nil, err
	}
	seq, hash, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(strings.TrimLeft(seq, "0"), 10, 64)
	if err != nil {
		return nil, err
	}
	return &replica.DeviceHead{Seq: n, Hash: hash}, nil
}

// saveDevice stores the head of the device that has sent a push.
func saveDevice(ctx context.Context, s database.Statements, tenant string, req replica.PushRequest) error {
	if req.Head.Seq <= 0 {
		return nil
	}
	_, err := s.Exec(ctx, raiseDevice, deviceName(tenant, req.DeviceID), fmt.Sprintf("%020d %s", req.Head.Seq, req.Head.Hash))
	return err
}

// headOf reads the device's head from the URL of a push. Errors: validation_error.
func headOf(r *http.Request) (head replica.DeviceHead, err error) {
	q := r.URL.Query()
	text := q.Get("device_seq")
	if text == "" {
		return head, nil
	}
	head.Hash = q.Get("device_hash")
	if head.Seq, err = strconv.ParseInt(text, 10, 64); err != nil || head.Seq < 1 || len(head.Hash) != 64 || strings.Trim(head.Hash, "0123456789abcdef") != "" {
		return head, invalid("device_seq", "device_seq is not a number above 0, or device_hash is not 64 lower-case hex digits")
	}
	return head, nil
}
