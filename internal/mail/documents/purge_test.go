package documents

import (
	"reflect"
	"strings"
	"testing"

	"cairn/internal/mail"
)

func TestATombstoneIsReadBack(t *testing.T) {
	t.Parallel()
	thread, topic, reply := "FEAT-1", "build", int64(3)
	m := &mail.Message{
		ID: 7, UID: strings.Repeat("a", 26), ProjectUID: uid, From: "GreenLake", To: []string{"BlueDog"}, CC: []string{"RedFox"}, BCC: []string{}, ThreadID: &thread,
		ReplyTo: &reply, Topic: &topic, Importance: "high", AckRequired: true, Created: 1_772_357_405_000_001_000, Ordinal: 1002,
	}
	bury(m, 1_772_357_406_000_002_000)
	m.Dropped = []string{strings.Repeat("b", 40)}
	if err := mail.Validate(m); err != nil {
		t.Error(err)
	}
	f, err := tombstoneFile(m, &mail.Project{HumanKey: "/w/app"})
	if err != nil || f.Path != "messages/tombstones/7.json" {
		t.Fatal(f.Path, err)
	}
	read, err := parse(f.Path, f.Content, uid)
	if err != nil || !reflect.DeepEqual(read, m) {
		t.Errorf("%+v, %v\nwant %+v", read, err, m)
	}
	for _, broken := range []string{`{}`, `[]`, `{"id":7}`, strings.Replace(string(f.Content), `"purged_ts"`, `"x"`, 1)} {
		if _, err := parse(f.Path, []byte(broken), uid); err == nil {
			t.Errorf("%s is a tombstone", broken)
		}
	}
	m.Body = "a text"
	if mail.Validate(m) == nil {
		t.Error("a purged message with a text is sound")
	}
}
