package mail

import (
	"reflect"
	"strings"
	"testing"
)

func TestATombstoneIsReadBack(t *testing.T) {
	t.Parallel()
	thread, topic, reply := "FEAT-1", "build", int64(3)
	m := &Message{
		ID: 7, UID: strings.Repeat("a", 26), ProjectUID: uid, From: "GreenLake", To: []string{"BlueDog"}, CC: []string{"RedFox"}, BCC: []string{}, ThreadID: &thread,
		ReplyTo: &reply, Topic: &topic, Importance: "high", AckRequired: true, Created: 1_772_357_405_000_001_000, Ordinal: 1002,
	}
	m.bury(1_772_357_406_000_002_000)
	m.Dropped = []string{strings.Repeat("b", 40)}
	if err := sound(m); err != nil {
		t.Error(err)
	}
	f, err := m.tombstone(&Project{HumanKey: "/w/app"})
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
	if sound(m) == nil {
		t.Error("a purged message with a text is sound")
	}
}

// FuzzSeenCall: whatever a hook is told, a failed call names nobody.
func FuzzSeenCall(f *testing.F) {
	f.Add("register_agent", `{"name":"RedFox"}`, "RedFox")
	f.Add("macro_start_session", `{"agent":{"name":"RedFox"}}`, "")
	f.Add("macro_start_session", `{"agent":[1]}`, "x")
	f.Add("send_message", `{"error":{"code":"NOT_FOUND"}}`, "RedFox")
	f.Add("send_message", `{"error":null}`, "RedFox")
	f.Add("send_message", `null`, "RedFox")
	f.Add("fetch_inbox", `[]`, "RedFox")
	f.Fuzz(func(t *testing.T, tool, result, argument string) {
		c := ObservedCall{Tool: tool, Result: result, Argument: func(string) string { return argument }}
		name, _ := c.actor()
		if name == "" {
			return
		}
		if !strings.HasPrefix(result, "{") {
			t.Errorf("%q names %q by %q", tool, name, result)
		}
	})
}
