package redact

import "strings"

// Rule names of URLs.
const (
	ruleURLPassword = "url_password"
	ruleURLQuery    = "url_query"
	ruleWebhook     = "webhook_url"
)

// webhooks are the hosts, with the beginning of the path, whose URLs are secrets
// in themselves: what follows is taken out.
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
	if last-end >= shortest && !isPlaceholder(s.text[end:min(last, end+longestJudged)]) {
		s.add(ruleWebhook, end, last)
		s.urlEnd = last
	}
}

// urlEnd returns where a URL ends: at white space, a quote or a bracket, less the
// punctuation of the sentence around it.
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

// urlRun is what is known about the stretch without white space around the last
// "://".
type urlRun struct {
	end    int // 0 before the first
	lastAt int // the last '@' in it, -1 for none
}

// urlPassword looks at the "://" at text[start:end] for user:password@.
func (s *scan) urlPassword(start, end int) {
	t := s.text
	if start == 0 || !isAlnum(t[start-1]) || start < s.urlEnd {
		return
	}
	if end > s.run.end || s.run.end == 0 {
		last := skip(t, end, len(t), func(c byte) bool { return !isSpace(c) && !isQuote(c) && c != '<' && c != '>' })
		s.run = urlRun{end: last, lastAt: strings.LastIndexByte(t[end:last], '@') + end}
		if s.run.lastAt < end {
			s.run.lastAt = -1
		}
	}
	if s.run.lastAt < end {
		return
	}
	user := skip(t, end, 256, func(c byte) bool { return !isSpace(c) && c != ':' && c != '/' && c != '@' && c != '?' && c != '#' })
	if user == len(t) {
		return
	}
	switch t[user] {
	case '@':
		s.urlToken(end, user)
		return
	case ':':
	default:
		return
	}
	at := s.passwordEnd(user + 1)
	if at <= user+1 {
		return
	}
	v := t[user+1 : at]
	if len(v) > longestReference || !onlyMarks(v) && !isMasked(v) && !isVariable(v) && !isURLTemplate(v) {
		s.add(ruleURLPassword, user+1, at)
		s.urlEnd, s.namedEnd = at, max(s.namedEnd, at)
	}
}

func isURLTemplate(v string) bool {
	return v[0] == '<' || v[0] == '{' || v[0] == '[' || v == "%s" || v == "%v"
}

// urlToken takes a user name that is a token: https://TOKEN@host.
func (s *scan) urlToken(start, end int) {
	const shortest = 20
	v := s.text[start:end]
	if len(v) >= shortest && (strangest(v).halfBits >= 20 || len(v) == 40 && allHex(v)) {
		s.add(ruleURLPassword, start, end)
	}
}

// passwordEnd returns the '@' that ends a password beginning at i: the first that
// a host follows, as passwords may hold '@' and '/' although they should not. It
// returns -1 if this is a port and a path instead.
func (s *scan) passwordEnd(i int) int {
	t := s.text
	port := skip(t, i, 6, isDigit)
	if port > i && (port == s.run.end || strings.IndexByte("/?#", t[port]) >= 0) || s.run.lastAt < i {
		return -1
	}
	authority := strings.IndexAny(t[i:s.run.lastAt+1], "/?#,;)")
	for at := i; at <= s.run.lastAt; at++ {
		if t[at] != '@' {
			continue
		}
		host := skip(t, at+1, 255, func(c byte) bool {
			return isWord(c) || c == '.' || c == '-' || c == ':' || c == '[' || c == ']' || c == '$' || c == '{' || c == '}' || c == '*'
		})
		ends := host >= s.run.end || strings.IndexByte("/?#,;)\\", t[host]) >= 0
		inside := authority < 0 || at < i+authority
		if ends && (at == s.run.lastAt || inside && looksLikeHost(t[at+1:host])) {
			return at
		}
	}
	return s.run.lastAt
}

// looksLikeHost reports whether h can be told to be a host: with a dot or a port,
// or the local one.
func looksLikeHost(h string) bool {
	return strings.ContainsAny(h, ".:") || h == "localhost"
}

// query looks at "sig=" and its like; only behind a sign that begins a parameter
// of a URL.
func (s *scan) query(start, end int) {
	const shortest = 4
	t := s.text
	name := back(t, start, 24, func(c byte) bool { return isWord(c) || c == '-' })
	switch {
	case name == 0:
		return
	case t[name-1] == '?' || t[name-1] == '&' || t[name-1] == '#':
	case strings.HasSuffix(t[:name], "&amp;"):
	case start >= 5 && strings.HasSuffix(t[:start], "u0026"):
		name = start
	default:
		return
	}
	if hasFold(t[start:end], "key=") && name != start && !keyOpens(t[:start]) {
		return
	}
	last := skip(t, end, len(t), func(c byte) bool { return !isBreak(c) && c != '&' && c != '#' && c != '\\' && c != '|' })
	v := t[end:last]
	if len(v) < shortest || len(v) <= longestReference && isPlaceholder(v) {
		return
	}
	s.add(ruleURLQuery, end, last)
	s.namedEnd = max(s.namedEnd, last)
}
