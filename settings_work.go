package cairn

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/guard"
	"cairn/internal/mail"
	"cairn/internal/replica"
)

// workSettings are the keys of mail, reservations and servers (mail §12), only in the
// user's file. The environment overrides them. A nil field means the default.
type workSettings struct {
	Mail         mailSettings        `toml:"mail"`
	Reservations reservationSettings `toml:"reservations"`
	Guard        guardSettings       `toml:"guard"`
	MCP          mcpSettings         `toml:"mcp"`
	HTTP         httpSettings        `toml:"http"`
	Archive      archiveSettings     `toml:"archive"`
	Disk         diskSettings        `toml:"disk"`
	DB           dbSettings          `toml:"db"`
	Memory       memorySettings      `toml:"memory"`
	Hub          hubSettings         `toml:"hub"`
}

type mailSettings struct {
	NameMode            *string `toml:"name_mode"`
	Tokens              *string `toml:"tokens"`
	ContactEnforcement  *bool   `toml:"contact_enforcement"`
	ContactWindow       *int    `toml:"contact_window_seconds"`
	FirstContact        *bool   `toml:"first_contact"`
	RegisterRecipients  *bool   `toml:"auto_register_recipients"`
	MaxBody             *int    `toml:"max_body_bytes"`
	MaxAttachment       *int    `toml:"max_attachment_bytes"`
	MaxAttachments      *int    `toml:"max_attachments_bytes"`
	InlineImage         *int    `toml:"inline_image_bytes"`
	AbsoluteAttachments *bool   `toml:"allow_absolute_attachments"`
	AckTTL              *int    `toml:"ack_ttl_seconds"`
	AckOverdue          *int    `toml:"ack_overdue_seconds"`
	IdempotencyHours    *int    `toml:"idempotency_hours"`
	CallTimeout         *string `toml:"call_timeout"`
	Notices             *bool   `toml:"notices"`
	NoticeTokens        *int    `toml:"notice_tokens"`
	NoticeInterval      *int    `toml:"notice_interval_seconds"`
}

type reservationSettings struct {
	MaxTTL      *int `toml:"max_ttl_seconds"`
	Inactivity  *int `toml:"inactivity_seconds"`
	Grace       *int `toml:"grace_seconds"`
	OrphanGrace *int `toml:"orphan_grace_seconds"` // until reservations of an ended session are released
	Sweep       *int `toml:"sweep_seconds"`
}

type guardSettings struct {
	Mode        *string `toml:"mode"`
	Strict      *bool   `toml:"strict"`       // ask if reservations cannot be checked
	AutoReserve *bool   `toml:"auto_reserve"` // an edit reserves its file
	Lease       *int    `toml:"lease_seconds"`
	MaxMS       *int    `toml:"max_ms"` // CPU time for checking reservations
}

type mcpSettings struct {
	Profile *string `toml:"profile"`
}

// maxSetting limits the numbers of workSettings that have no separate limit: half a gigabyte,
// or 17 years.
const maxSetting = 1 << 29

// bounds returns the minimum and maximum of a numeric key.
func bounds(key string) (low, high int) {
	section, name, _ := strings.Cut(key, ".")
	switch {
	case key == "guard.lease_seconds":
		return minLease, maxSetting
	case key == "http.rate_limit_per_minute": // 0 for no limit
		return 0, 1_000_000
	case section == "http": // seconds
		return 1, 3600
	case section == "disk": // MiB, 0 for never short
		return 0, 1 << 30
	case section == "db":
		return 1, maxReaders
	case key == "hub.batch":
		return 1, replica.MaxPushItems
	case key == "hub.lease_s":
		return 5, 3600
	case key == "hub.timeout_s":
		return 1, 600
	case name == "window_ms":
		return 0, 10_000
	case name == "shards":
		return 1, 64
	case name == "probe_messages":
		return 0, 100_000
	case name == "stale_lock_seconds":
		return 1, 86_400
	}
	return 1, maxSetting
}

// defaultCallTimeout is the default timeout of a call (mail §12).
const defaultCallTimeout = 30 * time.Second

// enumKeys returns the keys with a fixed set of values.
func (s *workSettings) enumKeys() []struct {
	key   string
	value *string
	among []string
} {
	return []struct {
		key   string
		value *string
		among []string
	}{
		{"mail.name_mode", s.Mail.NameMode, []string{string(mail.Coerce), string(mail.Strict), string(mail.AlwaysAuto)}},
		{"mail.tokens", s.Mail.Tokens, []string{string(mail.TokensOptional), string(mail.TokensOff), string(mail.TokensEnforced)}},
		{"guard.mode", s.Guard.Mode, []string{guard.Off, guard.Warn, guard.Block}},
		{"mcp.profile", s.MCP.Profile, Profiles()},
		{"hub.on_permanent", s.Hub.OnPermanent, []string{"skip", "halt"}},
	}
}

// Profiles returns the names of the tool profiles, the default first (mail §5, design §7).
func Profiles() []string { return []string{"full", "core", "messaging", "minimal", "lean"} }

// check returns the first invalid key, nil if all are valid. It normalises the values of
// enumKeys.
func (s *workSettings) check() *keyError {
	if value(s.Guard.Mode) == "advisory" { // the name in other guards
		s.Guard.Mode = new(guard.Warn)
	}
	for _, w := range s.enumKeys() {
		if w.value != nil && !slices.Contains(w.among, *w.value) {
			last := len(w.among) - 1
			return &keyError{w.key, "must be " + strings.Join(w.among[:last], ", ") + " or " + w.among[last]}
		}
	}
	if t := s.Mail.CallTimeout; t != nil {
		if d, err := time.ParseDuration(*t); err != nil || d <= 0 || d > time.Hour {
			return &keyError{"mail.call_timeout", "must be a duration of at most 1h, such as 30s"}
		}
	}
	wrong := s.checkMemory()
	s.forEachKey(func(key string, field reflect.Value) {
		low, high := bounds(key)
		if n, ok := field.Interface().(*int); ok && n != nil && !strings.HasPrefix(key, "memory.") && (*n < low || *n > high) && wrong == nil {
			wrong = &keyError{key, fmt.Sprintf("must be from %d to %d", low, high)}
		}
	})
	if wrong == nil {
		wrong = s.DB.check()
	}
	return wrong
}

// forEachKey calls fn with every key and its field, in order.
func (s *workSettings) forEachKey(fn func(key string, field reflect.Value)) {
	all := reflect.ValueOf(s).Elem()
	for i := range all.NumField() {
		section, name := all.Field(i), all.Type().Field(i).Tag.Get("toml")
		for j := range section.NumField() {
			fn(name+"."+section.Type().Field(j).Tag.Get("toml"), section.Field(j))
		}
	}
}

// EnvName returns the environment variable that overrides a key of config.toml (mail §12).
func EnvName(key string) string { return "CAIRN_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_")) }

// override applies the environment variables. setting returns "" for an unset one.
func (s *workSettings) override(setting func(key string) string) error {
	if setting == nil {
		return nil
	}
	var wrong *keyError
	s.forEachKey(func(key string, field reflect.Value) {
		text := strings.TrimSpace(setting(key))
		if text == "" || wrong != nil {
			return
		}
		switch field.Interface().(type) {
		case *string:
			field.Set(reflect.ValueOf(&text))
		case *int:
			n, err := strconv.Atoi(text)
			if err != nil {
				wrong = &keyError{key, "must be a whole number"}
			}
			field.Set(reflect.ValueOf(&n))
		case *float64:
			f, err := strconv.ParseFloat(text, 64)
			if err != nil {
				wrong = &keyError{key, "must be a number"}
			}
			field.Set(reflect.ValueOf(&f))
		case *bool:
			b, ok := parseBool(text)
			if !ok {
				wrong = &keyError{key, "must be true or false"}
			}
			field.Set(reflect.ValueOf(&b))
		}
	})
	if wrong == nil {
		wrong = s.check()
	}
	if wrong == nil {
		return nil
	}
	return fault.Newf(fault.Invalid, CodeSettings, "%s: %s %s", EnvName(wrong.key), wrong.key, wrong.why).
		WithHint("correct the variable or unset it")
}

// parseBool parses a boolean in the environment.
func parseBool(text string) (b, ok bool) {
	switch strings.ToLower(text) {
	case "1", "true", "on", "yes":
		return true, true
	case "0", "false", "off", "no":
		return false, true
	}
	return false, false
}

// secondsOf returns a setting in seconds, 0 for the default.
func secondsOf(n *int) time.Duration { return time.Duration(value(n)) * time.Second }

// value returns a setting, or the zero value for the default.
func value[T any](v *T) (out T) {
	if v != nil {
		out = *v
	}
	return out
}

// isOff reports whether a setting that is on by default is turned off.
func isOff(b *bool) bool { return b != nil && !*b }

// mailConfig returns the settings of the mail part.
func (s *workSettings) mailConfig() mail.Config {
	m, r := &s.Mail, &s.Reservations
	return mail.Config{
		NameMode: mail.NameMode(value(m.NameMode)), Tokens: mail.TokenMode(value(m.Tokens)),
		NoContactEnforcement: isOff(m.ContactEnforcement), ContactWindow: secondsOf(m.ContactWindow),
		NoFirstContact: isOff(m.FirstContact), RegisterRecipients: value(m.RegisterRecipients),
		MaxBody: value(m.MaxBody), MaxAttachment: value(m.MaxAttachment), MaxAttachments: value(m.MaxAttachments),
		InlineImage: value(m.InlineImage), AbsoluteAttachments: value(m.AbsoluteAttachments),
		Idempotency: time.Duration(value(m.IdempotencyHours)) * time.Hour,
		MaxTTL:      secondsOf(r.MaxTTL), Inactivity: secondsOf(r.Inactivity), Grace: secondsOf(r.Grace), OrphanGrace: secondsOf(r.OrphanGrace),
		AckTTL: secondsOf(m.AckTTL), AckOverdue: secondsOf(m.AckOverdue),
		NoticeTokens: value(m.NoticeTokens), NoticeInterval: secondsOf(m.NoticeInterval),
	}
}

// callTimeout returns the timeout of a mail call.
func (s *workSettings) callTimeout() time.Duration {
	if s.Mail.CallTimeout != nil {
		if d, err := time.ParseDuration(*s.Mail.CallTimeout); err == nil {
			return d
		}
	}
	return defaultCallTimeout
}
