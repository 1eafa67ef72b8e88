package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// Rule names of URLs.
const (
	ruleURLPassword = "url_password"
	ruleURLQuery    = "url_query"
	ruleWebhook     = "webhook_url"
)

// webhooks contains hosts with the beginning of the path of secret URLs. The rest of such
// a URL is redacted.
var webhooks = [...]string{
	"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/",
	"discord.com/api/webhooks/", "discordapp.com/api/webhooks/",
	"webhook.office.com/webhookb2/", "webhook.office.com/webhook/", "outlook.office.com/webhook/",
	"hooks.zapier.com/hooks/", "maker.ifttt.com/trigger/", "maker.ifttt.com/use/",
	"events.pagerduty.com/integration/", "open.feishu.cn/open-apis/bot/v2/hook/",
	"open.larksuite.com/open-apis/bot/v2/hook/", "webhook.site/", "hook.eu1.make.com/", "hook.eu2.make.com/",
	"hook.us1.make.com/", "hook.us2.make.com/", "hook.integromat.com/", "hooks.airtable.com/workflows/",
}

func (s *scan) webhook(_, end int) {
	const shortest = 8
	if end < s.urlEnd {
		return
	}
	last := urlEnd(s.text, end)
	if last-end >= shortest && !looks.IsPlaceholder(s.text[end:min(last, end+looks.LongestChecked)]) {
		s.add(ruleWebhook, end, last)
		s.urlEnd = last
	}
}

// urlEnd returns the end of a URL: white space, a quote or a bracket. It excludes the
// punctuation of the surrounding sentence.
func urlEnd(t string, i int) int {
	start := i
	for i < len(t) && !isBreak(t[i]) && t[i] != '\\' && t[i] != '|' {
		i++
	}
	for i > start && strings.IndexByte(".:!?", t[i-1]) >= 0 {
		i--
	}
	return i
}

// urlRun describes the part without white space around the last "://".
type urlRun struct {
	end    int // 0 before the first run
	lastAt int // the last '@' in it, -1 for none
}

// urlPassword handles the "://" at text[start:end] for user:password@.
func (s *scan) urlPassword(start, end int) {
	if start == 0 || !shape.IsAlnum(s.text[start-1]) || start < s.urlEnd || s.lastAtFrom(end) < 0 {
		return
	}
	const longest = 256 // maximum bytes of the user name
	user := shape.Skip(s.text, end, longest, func(c byte) bool { return !shape.IsSpace(c) && strings.IndexByte(":/@?#", c) < 0 })
	switch s.text[user] {
	case '@':
		s.urlToken(end, user)
	case ':':
		if rest := s.text[user:]; strings.HasPrefix(rest, ":x-oauth-basic@") || strings.HasPrefix(rest, ":@") {
			s.urlToken(end, user) // a token with an empty password
		}
		if at := s.passwordEnd(user + 1); at > user+1 && isURLPassword(s.text[user+1:at]) {
			s.add(ruleURLPassword, user+1, at)
			s.urlEnd, s.namedEnd = at, max(s.namedEnd, at)
		}
	}
}

// lastAtFrom returns the last '@' in the run around text[i] without white space and
// quotes, or -1 if there is none from i on.
func (s *scan) lastAtFrom(i int) int {
	if s.run.end == 0 || i > s.run.end {
		end := shape.Skip(s.text, i, len(s.text), func(c byte) bool { return !shape.IsSpace(c) && !shape.IsQuote(c) && c != '<' && c != '>' })
		s.run = urlRun{end: end, lastAt: i + strings.LastIndexByte(s.text[i:end], '@')}
	}
	if s.run.lastAt < i {
		return -1
	}
	return s.run.lastAt
}

// isURLPassword reports whether v, between a colon and an '@', is a password rather than a
// placeholder.
func isURLPassword(v string) bool {
	return len(v) > longestReference || !onlyMarks(v) && !looks.IsMasked(v) && !looks.IsVariable(v) && !isURLTemplate(v)
}

func isURLTemplate(v string) bool {
	return v[0] == '<' || v[0] == '{' || v[0] == '[' || v == "%s" || v == "%v"
}

// urlToken redacts a user name that is a token: https://TOKEN@host, or the key of a Sentry
// DSN.
func (s *scan) urlToken(start, end int) {
	if isURLToken(s.text[start:end]) {
		s.add(ruleURLPassword, start, end)
		s.urlEnd = end
	}
}

// isURLToken reports whether v, before the "@" of a URL, is a token rather than a user
// name. A token consists of hexadecimal digits, or of letters and digits that are not like
// a name.
func isURLToken(v string) bool {
	const shortest = 12
	if len(v) < shortest || len(v) > longestReference {
		return false
	}
	halfBits := looks.Strangest(v).HalfBits
	switch {
	case shape.IsUUID(v):
		return true
	case !strings.ContainsAny(v, "0123456789"):
		return len(v) >= 20 && halfBits >= 20
	case looks.AllHex(v):
		return true
	case !strings.ContainsAny(strings.TrimRight(v, "0123456789"), "0123456789"): // john.smith1985
		return halfBits >= 20
	}
	return halfBits >= min(max(len(v)-6, 8), 20)
}

// passwordEnd returns the '@' that ends a password beginning at i: the first one that a
// host follows. Passwords may contain '@' and '/', although they should not. It returns -1
// if the text is a port and a path.
func (s *scan) passwordEnd(i int) int {
	t, lastAt := s.text, s.lastAtFrom(i)
	port := shape.Skip(t, i, 6, shape.IsDigit)
	if lastAt < 0 || port > i && (port == s.run.end || strings.IndexByte("/?#", t[port]) >= 0) {
		return -1
	}
	authority := lastAt + 1 // start of the path, unless that is part of the password
	if n := strings.IndexAny(t[i:lastAt+1], "/?#,;)"); n >= 0 {
		authority = i + n
	}
	for at := i; at < authority; at++ {
		if t[at] == '@' {
			host := shape.Skip(t, at+1, 255, isHostByte)
			ends := host >= s.run.end || strings.IndexByte("/?#,;)\\", t[host]) >= 0
			if ends && (at == lastAt || looksLikeHost(t[at+1:host])) {
				return at
			}
		}
	}
	return lastAt
}

// isHostByte reports whether c may occur in a host with its port, or in a variable for a
// host.
func isHostByte(c byte) bool {
	return shape.IsWord(c) || strings.IndexByte(".-:[]${}*", c) >= 0
}

// looksLikeHost reports whether h is recognisable as a host: it has a dot or a port, or is
// the local host.
func looksLikeHost(h string) bool {
	return strings.ContainsAny(h, ".:") || h == "localhost"
}

// query handles "sig=" and similar names. They must follow a character that begins a
// parameter of a URL.
func (s *scan) query(start, end int) {
	const shortest = 4
	t := s.text
	if !isParameter(t[:start], t[start:end]) {
		return
	}
	last := shape.Skip(t, end, len(t), func(c byte) bool { return !isBreak(c) && strings.IndexByte("&#\\|", c) < 0 })
	v := t[end:last]
	if len(v) < shortest || len(v) <= longestReference && looks.IsPlaceholder(v) {
		return
	}
	s.add(ruleURLQuery, end, last)
	s.namedEnd = max(s.namedEnd, last)
}

// isParameter reports whether a parameter of a URL begins in before and ends with the
// given sign and name. If it ends with "key", it must not be a different key.
func isParameter(before, name string) bool {
	const longest = 24
	if strings.HasSuffix(before, "u0026") {
		return true
	}
	i := shape.Back(before, len(before), longest, func(c byte) bool { return shape.IsWord(c) || c == '-' })
	if shape.HasFold(name, "key") && i < len(before) && !keyOpens(before) {
		return false
	}
	opening := before[:i]
	return opening != "" && strings.IndexByte("?&#", opening[i-1]) >= 0 || strings.HasSuffix(opening, "&amp;")
}
