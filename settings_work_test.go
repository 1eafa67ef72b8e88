package cairn

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/guard"
	"cairn/internal/mail"
	"cairn/internal/memory"
	"cairn/internal/settings"
)

// everyMailSetting is config.toml with each key of mail §12 that cairn reads, set to a
// value other than the default.
const everyMailSetting = `
[mail]
name_mode = "strict"
tokens = "enforced"
contact_enforcement = false
contact_window_seconds = 11
first_contact = false
auto_register_recipients = true
max_body_bytes = 12
max_attachment_bytes = 13
max_attachments_bytes = 14
inline_image_bytes = 15
allow_absolute_attachments = true
ack_ttl_seconds = 16
ack_overdue_seconds = 17
idempotency_hours = 18
call_timeout = "19s"
notices = false
notice_tokens = 20
notice_interval_seconds = 21
[reservations]
max_ttl_seconds = 22
inactivity_seconds = 23
grace_seconds = 24
orphan_grace_seconds = 28
sweep_seconds = 25
[guard]
mode = "block"
strict = true
auto_reserve = true
lease_seconds = 61
max_ms = 26
[mcp]
profile = "core"
[http]
rate_limit_per_minute = 27
header_s = 28
read_s = 29
write_s = 30
idle_s = 31
stop_s = 32
[archive]
window_ms = 33
shards = 34
probe_messages = 35
stale_lock_seconds = 36
of_encrypted = true
[disk]
warning_mb = 37
critical_mb = 38
fatal_mb = 39
[db]
readers_min = 40
readers_max = 41
[memory]
shards = 42
queue_len = 43
enqueue_timeout_ms = 44
max_context_chars = 45
delete_timeout_ms = 46
redact = false
retention_days = 47
retention_mb = 48
purge_chunk = 49
prompts_dir = "/prompts"
search_alpha = 0.25
embed_url = "http://127.0.0.1:11434/api/embeddings"
embed_model = "m"
[hub]
url = "https://hub.example"
batch = 50
lease_s = 51
timeout_s = 52
on_permanent = "halt"
`

func TestEverySettingOfMailIsReadAndUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "config.toml"), everyMailSetting, 0o600)
	c, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := mail.Config{
		NameMode: mail.Strict, Tokens: mail.TokensEnforced, NoContactEnforcement: true, ContactWindow: 11 * time.Second, NoFirstContact: true,
		RegisterRecipients: true, MaxBody: 12, MaxAttachment: 13, MaxAttachments: 14, InlineImage: 15, AbsoluteAttachments: true,
		AckTTL: 16 * time.Second, AckOverdue: 17 * time.Second, Idempotency: 18 * time.Hour, NoticeTokens: 20, NoticeInterval: 21 * time.Second,
		MaxTTL: 22 * time.Second, Inactivity: 23 * time.Second, Grace: 24 * time.Second, OrphanGrace: 28 * time.Second,
	}
	w := &c.Settings.Work
	if got := w.MailConfig(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if w.CallTimeoutOrDefault() != 19*time.Second || !settings.IsOff(w.Mail.Notices) || settings.Seconds(w.Reservations.Sweep) != 25*time.Second || c.Profile() != "core" {
		t.Errorf("%v, %v, %v, %s", w.CallTimeoutOrDefault(), w.Mail.Notices, w.Reservations.Sweep, c.Profile())
	}
	if g := &w.Guard; g.ModeOrDefault() != guard.Block || !settings.Value(g.Strict) || !settings.Value(g.AutoReserve) || g.LeaseTime() != 61*time.Second || g.TimeFor(0) != 26*time.Millisecond {
		t.Errorf("%+v", g)
	}
	if got, want := c.HTTP(), (HTTP{27, 28 * time.Second, 29 * time.Second, 30 * time.Second, 31 * time.Second, 32 * time.Second}); got != want {
		t.Errorf("http is %+v", got)
	}
	if a := c.archiver(nil, nil); a.Window != 33*time.Millisecond || a.Shards != 34 || a.Probe != 35 || a.Stale != 36*time.Second ||
		a.Space.Warning != 37 || a.Space.Critical != 38 || a.Space.Fatal != 39 || !settings.Value(w.Archive.OfEncrypted) {
		t.Errorf("the archive is %+v", a.Config)
	}
	if w.DB.MinOpen() != 40 || w.DB.MaxOpen() != 41 {
		t.Errorf("%d to %d readers", w.DB.MinOpen(), w.DB.MaxOpen())
	}
	if got, want := memoryConfig(w, c.ObservationConfig.Filter), (memory.Config{Settings: memory.Settings{
		Shards: 42, QueueLen: 43, EnqueueTimeout: 44 * time.Millisecond, MaxContextChars: 45, DeleteTimeout: 46 * time.Millisecond,
		RetentionDays: 47, RetentionMB: 48, PurgeChunk: 49, PromptsDir: "/prompts",
		SearchAlpha: 0.25, EmbedURL: "http://127.0.0.1:11434/api/embeddings", EmbedModel: "m",
	}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if h := w.Hub; settings.Value(h.URL) != "https://hub.example" || settings.Value(h.Batch) != 50 || settings.Seconds(h.LeaseS) != 51*time.Second ||
		hubTimeout(w) != 52*time.Second || settings.Value(h.OnPermanent) != "halt" {
		t.Errorf("the hub is %+v", h)
	}
	w.ForEachKey(func(key string, field reflect.Value) {
		if field.IsNil() {
			t.Errorf("%s is not in this test", key)
		}
	})
}

func TestDefaultsOfMailAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	c, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w := &c.Settings.Work
	if w.CallTimeoutOrDefault() != 30*time.Second || w.Guard.ModeOrDefault() != guard.Warn || w.Guard.LeaseTime() != 900*time.Second || c.Profile() != "full" {
		t.Errorf("%v, %s, %v, %s", w.CallTimeoutOrDefault(), w.Guard.ModeOrDefault(), w.Guard.LeaseTime(), c.Profile())
	}
	if w.DB.MinOpen() != 25 || w.DB.MaxOpen() != 100 {
		t.Errorf("%d to %d readers", w.DB.MinOpen(), w.DB.MaxOpen())
	}
	if got := w.MailConfig(); !reflect.DeepEqual(got, mail.Config{}) { // zero values mean the defaults
		t.Errorf("%+v", got)
	}
}

// TestTheEnvironmentGoesOverTheFile sets every key in both.
func TestTheEnvironmentGoesOverTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "config.toml"), everyMailSetting, 0o600)
	environment := map[string]string{
		"CAIRN_MAIL_NAME_MODE": " always_auto ", "CAIRN_MAIL_CONTACT_ENFORCEMENT": "ON", "CAIRN_MAIL_MAX_BODY_BYTES": "99", "CAIRN_MAIL_CALL_TIMEOUT": "2m",
		"CAIRN_RESERVATIONS_GRACE_SECONDS": "98", "CAIRN_GUARD_MODE": "advisory", "CAIRN_GUARD_STRICT": "0", "CAIRN_MCP_PROFILE": "lean",
		"CAIRN_HTTP_STOP_S": "9", "CAIRN_ARCHIVE_SHARDS": "8", "CAIRN_ARCHIVE_OF_ENCRYPTED": "no", "CAIRN_DISK_FATAL_MB": "7", "CAIRN_DB_READERS_MIN": "6",
	}
	c, err := Open(Config{Dir: dir, Setting: func(key string) string { return environment[settings.EnvName(key)] }})
	if err != nil {
		t.Fatal(err)
	}
	w := &c.Settings.Work
	got := w.MailConfig()
	if got.NameMode != mail.AlwaysAuto || got.NoContactEnforcement || got.MaxBody != 99 || got.Grace != 98*time.Second || w.CallTimeoutOrDefault() != 2*time.Minute {
		t.Errorf("%+v", got)
	}
	if w.Guard.ModeOrDefault() != guard.Warn || settings.Value(w.Guard.Strict) || c.Profile() != "lean" || got.MaxAttachment != 13 {
		t.Errorf("%+v, %+v", got, w.Guard)
	}
	if a := c.archiver(nil, nil); c.HTTP().Stop != 9*time.Second || a.Shards != 8 || a.Space.Fatal != 7 || settings.Value(w.Archive.OfEncrypted) || w.DB.MinOpen() != 6 {
		t.Errorf("%+v, %+v", c.HTTP(), a.Config)
	}
	for name, wrong := range map[string]string{
		"CAIRN_HTTP_RATE_LIMIT_PER_MINUTE": "-1", "CAIRN_HTTP_READ_S": "0", "CAIRN_ARCHIVE_WINDOW_MS": "10001", "CAIRN_ARCHIVE_OF_ENCRYPTED": "2",
		"CAIRN_DISK_WARNING_MB": "-1", "CAIRN_DB_READERS_MAX": "1001", "CAIRN_DB_READERS_MIN": "101",
		"CAIRN_MAIL_TOKENS": "some", "CAIRN_MAIL_MAX_BODY_BYTES": "many", "CAIRN_MAIL_NOTICES": "perhaps", "CAIRN_RESERVATIONS_MAX_TTL_SECONDS": "0",
		"CAIRN_MAIL_CALL_TIMEOUT": "30", "CAIRN_GUARD_MODE": "loud", "CAIRN_GUARD_LEASE_SECONDS": "5", "CAIRN_MCP_PROFILE": "fat",
	} {
		_, err := Open(Config{Dir: t.TempDir(), Setting: func(key string) string {
			if settings.EnvName(key) == name {
				return wrong
			}
			return ""
		}})
		if f := fault.As(err); err == nil || f.Code != settings.Code || !strings.HasPrefix(f.Message, name+": ") {
			t.Errorf("%s=%s: %v", name, wrong, err)
		}
	}
}

func TestWrongSettingsOfMailAreNamedByTheirLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[mail]\nname_mode = \"lax\"\n":            "line 2: mail.name_mode must be coerce, strict or always_auto",
		"[mail]\n\ncall_timeout = \"2h\"\n":        "line 3: mail.call_timeout must be a duration of at most 1h, such as 30s",
		"[mail]\nmax_body_bytes = 536870913\n":     "line 2: mail.max_body_bytes must be from 1 to 536870912",
		"[reservations]\nsweep_seconds = -1\n":     "line 2: reservations.sweep_seconds must be from 1 to ",
		"[guard]\nlease_seconds = 59\n":            "line 2: guard.lease_seconds must be from 60 to 536870912",
		"[http]\nidle_s = 3601\n":                  "line 2: http.idle_s must be from 1 to 3600",
		"[disk]\nfatal_mb = -1\n":                  "line 2: disk.fatal_mb must be from 0 to 1073741824",
		"[db]\nreaders_min = 9\nreaders_max = 8\n": "line 2: db.readers_min must be from 1 to 8, which is db.readers_max",
		"[db]\nreaders_max = 0\n":                  "line 2: db.readers_max must be from 1 to 1000",
		"[mcp]\nprofile = \"\"\n":                  "line 2: mcp.profile must be full, core, messaging, minimal or lean",
		"[mail]\nmax_body_bytes = \"12\"\n":        "line 2",
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "config.toml"), text, 0o600)
		if _, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(fault.As(err).Message, want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
