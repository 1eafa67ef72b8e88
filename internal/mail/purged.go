package mail

import (
	"database/sql"
	"encoding/json"
)

const buryMessage = `UPDATE mail_messages SET subject = '', body_md = '', attachments = ?2, archive_path = ?3 WHERE uid = ?1`

// purgeMarker is the content of the attachments column of a purged message.
type purgeMarker struct {
	Purged  Time     `json:"purged"`
	Dropped []string `json:"dropped,omitempty"`
}

// AttachmentsColumn returns the content of the attachments column.
func (m *Message) AttachmentsColumn() any {
	if m.Purged == 0 {
		return textOrNull(m.Attachments)
	}
	text, _ := json.Marshal(purgeMarker{m.Purged, m.Dropped}) // it cannot fail for a time and texts
	return string(text)
}

// MarkerOf parses an attachments column. It returns the marker of a purged message, nil for
// any other message.
func MarkerOf(column sql.NullString) *purgeMarker {
	m := &purgeMarker{}
	if column.String == "" || column.String[0] != '{' || json.Unmarshal([]byte(column.String), m) != nil || m.Purged == 0 {
		return nil
	}
	return m
}
