package settings

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
)

// Work are the keys of mail, reservations and servers (mail §12), only in the
// user's file. The environment overrides them. A nil field means the default.
type Work struct {
	Mail         Mail         `toml:"mail"`
	Reservations Reservations `toml:"reservations"`
	Guard        Guard        `toml:"guard"`
	MCP          MCP          `toml:"mcp"`
	HTTP         HTTP         `toml:"http"`
	Archive      Archive      `toml:"archive"`
	Disk         Disk         `toml:"disk"`
	DB           DB           `toml:"db"`
	Memory       Memory       `toml:"memory"`
	Hub          Hub          `toml:"hub"`
}

// Mail are the keys of mail.
type Mail struct {
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

// Reservations are the keys of reservations.
type Reservations struct {
	MaxTTL      *int `toml:"max_ttl_seconds"`
	Inactivity  *int `toml:"inactivity_seconds"`
	Grace       *int `toml:"grace_seconds"`
	OrphanGrace *int `toml:"orphan_grace_seconds"` // until reservations of an ended session are released
	Sweep       *int `toml:"sweep_seconds"`
}

// Guard are the keys of guard.
type Guard struct {
	Mode        *string `toml:"mode"`
	Strict      *bool   `toml:"strict"`       // ask if reservations cannot be checked
	AutoReserve *bool   `toml:"auto_reserve"` // an edit reserves its file
	Lease       *int    `toml:"lease_seconds"`
	MaxMS       *int    `toml:"max_ms"` // CPU time for checking reservations
}

// MCP are the keys of mcp.
type MCP struct {
	Profile *string `toml:"profile"`
}

// maxSetting limits the numbers of Work that have no separate limit: half a gigabyte,
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
func (s *Work) enumKeys() []struct {
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

// check returns the first invalid key, also of further unless that is nil; nil if all are
// valid. It normalises the values of
// enumKeys.
func (s *Work) check(further Check) *KeyError {
	if Value(s.Guard.Mode) == "advisory" { // the name in other guards
		s.Guard.Mode = new(guard.Warn)
	}
	for _, w := range s.enumKeys() {
		if w.value != nil && !slices.Contains(w.among, *w.value) {
			last := len(w.among) - 1
			return &KeyError{w.key, "must be " + strings.Join(w.among[:last], ", ") + " or " + w.among[last]}
		}
	}
	if t := s.Mail.CallTimeout; t != nil {
		if d, err := time.ParseDuration(*t); err != nil || d <= 0 || d > time.Hour {
			return &KeyError{"mail.call_timeout", "must be a duration of at most 1h, such as 30s"}
		}
	}
	var wrong *KeyError
	if further != nil {
		wrong = further(s)
	}
	s.ForEachKey(func(key string, field reflect.Value) {
		low, high := bounds(key)
		if n, ok := field.Interface().(*int); ok && n != nil && !strings.HasPrefix(key, "memory.") && (*n < low || *n > high) && wrong == nil {
			wrong = &KeyError{key, fmt.Sprintf("must be from %d to %d", low, high)}
		}
	})
	if wrong == nil {
		wrong = s.DB.check()
	}
	return wrong
}

// ForEachKey calls fn with every key and its field, in order.
func (s *Work) ForEachKey(fn func(key string, field reflect.Value)) {
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

// Override applies the environment variables. setting returns "" for an unset one and may
// be nil; so may check. Errors: Code (Invalid), with the name of the variable.
func (s *Work) Override(setting func(key string) string, check Check) error {
	if setting == nil {
		return nil
	}
	var wrong *KeyError
	s.ForEachKey(func(key string, field reflect.Value) {
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
				wrong = &KeyError{key, "must be a whole number"}
			}
			field.Set(reflect.ValueOf(&n))
		case *float64:
			f, err := strconv.ParseFloat(text, 64)
			if err != nil {
				wrong = &KeyError{key, "must be a number"}
			}
			field.Set(reflect.ValueOf(&f))
		case *bool:
			b, ok := parseBool(text)
			if !ok {
				wrong = &KeyError{key, "must be true or false"}
			}
			field.Set(reflect.ValueOf(&b))
		}
	})
	if wrong == nil {
		wrong = s.check(check)
	}
	if wrong == nil {
		return nil
	}
	return fault.Newf(fault.Invalid, Code, "%s: %s %s", EnvName(wrong.Key), wrong.Key, wrong.Why).
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

// Seconds returns a setting in seconds, 0 for the default.
func Seconds(n *int) time.Duration { return time.Duration(Value(n)) * time.Second }

// Value returns a setting, or the zero value for the default.
func Value[T any](v *T) (out T) {
	if v != nil {
		out = *v
	}
	return out
}

// IsOff reports whether a setting that is on by default is turned off.
func IsOff(b *bool) bool { return b != nil && !*b }

// MailConfig returns the settings of the mail part.
func (s *Work) MailConfig() mail.Config {
	m, r := &s.Mail, &s.Reservations
	return mail.Config{
		NameMode: mail.NameMode(Value(m.NameMode)), Tokens: mail.TokenMode(Value(m.Tokens)),
		NoContactEnforcement: IsOff(m.ContactEnforcement), ContactWindow: Seconds(m.ContactWindow),
		NoFirstContact: IsOff(m.FirstContact), RegisterRecipients: Value(m.RegisterRecipients),
		MaxBody: Value(m.MaxBody), MaxAttachment: Value(m.MaxAttachment), MaxAttachments: Value(m.MaxAttachments),
		InlineImage: Value(m.InlineImage), AbsoluteAttachments: Value(m.AbsoluteAttachments),
		Idempotency: time.Duration(Value(m.IdempotencyHours)) * time.Hour,
		MaxTTL:      Seconds(r.MaxTTL), Inactivity: Seconds(r.Inactivity), Grace: Seconds(r.Grace), OrphanGrace: Seconds(r.OrphanGrace),
		AckTTL: Seconds(m.AckTTL), AckOverdue: Seconds(m.AckOverdue),
		NoticeTokens: Value(m.NoticeTokens), NoticeInterval: Seconds(m.NoticeInterval),
	}
}

// CallTimeoutOrDefault returns the timeout of a mail call.
func (s *Work) CallTimeoutOrDefault() time.Duration {
	if s.Mail.CallTimeout != nil {
		if d, err := time.ParseDuration(*s.Mail.CallTimeout); err == nil {
			return d
		}
	}
	return defaultCallTimeout
}
