package cairn

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
)

// guardSettings are the keys of the guard at edit time (mail §8, §12); the user's
// file only.
type guardSettings struct {
	Mode         string `toml:"mode"`         // off, warn, block; "" for warn
	Strict       bool   `toml:"strict"`       // ask where reservations cannot be checked
	AutoReserve  bool   `toml:"auto_reserve"` // an edit takes a lease
	LeaseSeconds *int   `toml:"lease_seconds"`
	MaxMS        *int   `toml:"max_ms"` // of looking for reservations
}

// The modes of a guard (mail §8).
const (
	GuardOff   = "off"
	GuardWarn  = "warn"
	GuardBlock = "block"
)

const (
	usualLease     = 900 // seconds
	usualGuardTime = 4 * time.Millisecond
)

// reservationSettings are the keys of reservations; the user's file only.
type reservationSettings struct {
	MaxTTLSeconds     *int `toml:"max_ttl_seconds"`
	InactivitySeconds *int `toml:"inactivity_seconds"`
	GraceSeconds      *int `toml:"grace_seconds"`
	SweepSeconds      *int `toml:"sweep_seconds"`
}

func (g *guardSettings) validate(path string) error {
	switch g.Mode {
	case "", GuardOff, GuardWarn, GuardBlock:
	case "advisory":
		g.Mode = GuardWarn
	default:
		return settingsFault(nil, path, "guard.mode", fmt.Sprintf("guard.mode must be off, warn or block, not %.40q", g.Mode))
	}
	if n := g.LeaseSeconds; n != nil && *n < 60 {
		return settingsFault(nil, path, "guard.lease_seconds", "guard.lease_seconds must be 60 or more")
	}
	if n := g.MaxMS; n != nil && *n < 1 {
		return settingsFault(nil, path, "guard.max_ms", "guard.max_ms must be 1 or more")
	}
	return nil
}

func (r *reservationSettings) validate(path string) error {
	for key, n := range r.keys() {
		if *n != nil && **n < 1 {
			return settingsFault(nil, path, key, key+" must be 1 or more")
		}
	}
	return nil
}

func (r *reservationSettings) keys() map[string]**int {
	return map[string]**int{
		"reservations.max_ttl_seconds": &r.MaxTTLSeconds, "reservations.inactivity_seconds": &r.InactivitySeconds,
		"reservations.grace_seconds": &r.GraceSeconds, "reservations.sweep_seconds": &r.SweepSeconds,
	}
}

// override puts what the environment says (Config.Setting) in the place of what the
// files say, and judges it as theirs.
func (s *settings) override(setting func(key string) string) error {
	if setting == nil {
		return nil
	}
	words := map[string]func(string) error{
		"guard.mode":          func(v string) error { s.guard.Mode = v; return nil },
		"guard.strict":        truth(&s.guard.Strict),
		"guard.auto_reserve":  truth(&s.guard.AutoReserve),
		"guard.lease_seconds": number(&s.guard.LeaseSeconds), "guard.max_ms": number(&s.guard.MaxMS),
	}
	for key, n := range s.reservations.keys() {
		words[key] = number(n)
	}
	for key, set := range words {
		if v := strings.TrimSpace(setting(key)); v != "" {
			if err := set(v); err != nil {
				return fault.Newf(fault.Invalid, CodeSettings, "%s: %v", key, err)
			}
		}
	}
	if err := s.guard.validate("the environment"); err != nil {
		return err
	}
	return s.reservations.validate("the environment")
}

func truth(to *bool) func(string) error {
	return func(v string) error {
		switch strings.ToLower(v) {
		case "1", "true", "on", "yes":
			*to = true
		case "0", "false", "off", "no":
			*to = false
		default:
			return fmt.Errorf("%.40q is neither true nor false", v)
		}
		return nil
	}
}

func number(to **int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("%.40q is no number", v)
		}
		*to = &n
		return nil
	}
}

func (g *guardSettings) lease() time.Duration { return inSeconds(g.LeaseSeconds, usualLease) }

// time is how long looking for the reservations of some files may take: a little
// more for a patch of thousands.
func (g *guardSettings) time(files int) time.Duration {
	limit := usualGuardTime
	if g.MaxMS != nil {
		limit = time.Duration(*g.MaxMS) * time.Millisecond
	}
	return limit + time.Duration(min(files, 4600))*10*time.Microsecond
}

func inSeconds(n *int, usual int) time.Duration {
	if n != nil {
		usual = *n
	}
	return time.Duration(usual) * time.Second
}

// mailConfig is what the mail part needs of the settings.
func (s *settings) mailConfig(c *mail.Config) {
	r := s.reservations
	c.MaxTTL = inSeconds(r.MaxTTLSeconds, 0)
	c.Inactivity, c.Grace = inSeconds(r.InactivitySeconds, 0), inSeconds(r.GraceSeconds, 0)
}
