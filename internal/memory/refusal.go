package memory

import (
	"context"
	"encoding/json"
	"fmt"

	"cairn/internal/store/follow"
)

// HubRefusal is why the hub has refused a change, as it is stored with the change.
type HubRefusal struct {
	LocalID string `json:"local_id"` // what the change is about: pending-N, context-N, an id
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// RefusalColumns reads a HubRefusal from a row f of set_aside.
const RefusalColumns = `f.detail ->> '$.local_id', f.detail ->> '$.status', f.detail ->> '$.code', f.detail ->> '$.message'`

// Scan returns the destinations of RefusalColumns.
func (r *HubRefusal) Scan() []any { return []any{&r.LocalID, &r.Status, &r.Code, &r.Message} }

// SetAside sets a change of a stream aside that the hub has refused permanently.
func (s *CallTx) SetAside(ctx context.Context, stream string, seq int64, why HubRefusal) error {
	detail, err := json.Marshal(why)
	if err != nil {
		return err
	}
	return follow.SetAside(ctx, s.Tx, PushFollower, stream, follow.Refusal{
		Seq: seq, Final: true, Detail: string(detail), Err: fmt.Errorf("%s: %d %s: %s", why.LocalID, why.Status, why.Code, why.Message),
	})
}
