package markdown

import (
	"html"
	"strings"
	"unicode/utf8"
)

const (
	maxLink  = 2048 // bytes of an address
	maxLabel = 999
	maxAlt   = 500
)

func (s *inlines) open(isImage bool) {
	n := 1
	if isImage {
		n = 2
	}
	s.put(token{kind: text, text: s.in[s.at : s.at+n]}, s.at+n)
	s.brackets = append(s.brackets, bracket{len(s.out) - 1, len(s.runs), s.at, isImage})
}

// close makes a link or an image of what a bracket ends, if a destination follows or
// is defined.
func (s *inlines) close() bool {
	if len(s.brackets) == 0 {
		return false
	}
	b := s.brackets[len(s.brackets)-1]
	s.brackets = s.brackets[:len(s.brackets)-1]
	if len(s.brackets) < s.dead && !b.image {
		s.dead = len(s.brackets)
		return false
	}
	to, end, ok := s.destination(b)
	if !ok {
		s.dead = min(s.dead, len(s.brackets))
		return false
	}
	s.flush(s.at)
	s.emphasize(b.runs)
	if b.image {
		alt := plain(s.out[b.token+1:])
		s.out = append(s.out[:b.token], token{kind: image, text: alt, to: imageURL(to)})
		if s.out[b.token].to == "" {
			s.out[b.token].to = linkURL(to)
		}
	} else {
		s.out[b.token] = token{kind: anchor, to: linkURL(to)}
		s.out = append(s.out, token{kind: anchorEnd})
		s.dead = len(s.brackets)
	}
	s.dead = min(s.dead, len(s.brackets))
	s.at, s.plain = end, end
	return true
}

// plain is the text of tokens, cut.
func plain(all []token) string {
	var out strings.Builder
	for _, t := range all {
		if out.Len() > maxAlt {
			break
		}
		if t.kind == newline {
			t.text = " "
		}
		out.WriteString(t.text[:min(len(t.text), maxAlt)])
	}
	return strings.ToValidUTF8(out.String(), "")
}

// destination reads where a link leads that ends here: (address "title"), [label],
// [], or nothing behind its own text.
func (s *inlines) destination(b bracket) (to string, end int, ok bool) {
	rest := s.in[s.at+1:]
	if strings.HasPrefix(rest, "(") {
		if to, n, ok := inside(rest[1:]); ok {
			return to, s.at + 2 + n, true
		}
	}
	label, end := s.in[b.at:s.at], s.at+1
	if strings.HasPrefix(rest, "[") {
		if n := strings.IndexByte(rest[:min(len(rest), maxLabel+2)], ']'); n > 0 {
			if n > 1 {
				label = rest[1:n]
			}
			end += n + 1
		}
	}
	key, ok := labelled(label)
	if !ok {
		return "", 0, false
	}
	to, ok = s.page.refs[key]
	if !ok || s.page.refBudget < len(to) {
		return "", 0, false
	}
	s.page.refBudget -= len(to)
	return to, end, true
}

// labelled is a label as it is compared.
func labelled(label string) (string, bool) {
	if len(label) > maxLabel || strings.ContainsAny(label, "[]") {
		return "", false
	}
	key := strings.ToLower(strings.Join(strings.Fields(label), " "))
	return key, key != ""
}

// inside reads an address and a title between parentheses; n is how much that is,
// with the closing one.
func inside(in string) (to string, n int, ok bool) {
	n = blanks(in)
	to, m, ok := target(in[n:])
	if !ok {
		return "", 0, false
	}
	n += m
	gap := blanks(in[n:])
	n += gap
	if gap > 0 {
		n += title(in[n:])
		n += blanks(in[n:])
	}
	if !strings.HasPrefix(in[n:], ")") {
		return "", 0, false
	}
	return to, n + 1, true
}

// blanks counts the white space at the beginning of a text, up to some.
func blanks(in string) (n int) {
	for n < len(in) && n < 100 && (in[n] == ' ' || in[n] == '\n' || in[n] == '\t') {
		n++
	}
	return n
}

// title is the length of a title.
func title(in string) int {
	if in == "" {
		return 0
	}
	end := in[0]
	switch end {
	case '"', '\'':
	case '(':
		end = ')'
	default:
		return 0
	}
	for i := 1; i < len(in) && i < maxLink; i++ {
		switch in[i] {
		case '\\':
			i++
		case end:
			return i + 1
		}
	}
	return 0
}

// target reads an address, also one in angle brackets. The data of an image may be
// as long as it likes: it ends before any mark.
func target(in string) (to string, n int, ok bool) {
	if len(in) > 11 && strings.EqualFold(in[:11], "data:image/") {
		n = 11 + len(in[11:]) - len(strings.TrimLeft(in[11:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=;,"))
		return in[:n], n, true
	}
	if strings.HasPrefix(in, "<") {
		return enclosed(in)
	}
	depth := 0
	for ; n < len(in) && n <= maxLink; n++ {
		c := in[n]
		if c <= ' ' || c == 0x7f {
			return unescape(in[:n]), n, depth == 0
		}
		switch c {
		case '\\':
			if n+1 < len(in) && isPunctuation(in[n+1]) {
				n++
			}
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return unescape(in[:n]), n, true
			}
			depth--
		}
	}
	if n < len(in) || depth > 0 {
		return "", 0, false
	}
	return unescape(in), n, true
}

// enclosed reads an address in angle brackets.
func enclosed(in string) (to string, n int, ok bool) {
	for i := 1; i < len(in) && i < maxLink; i++ {
		switch in[i] {
		case '\\':
			i++
		case '\n', '<':
			return "", 0, false
		case '>':
			return unescape(in[1:i]), i + 1, true
		}
	}
	return "", 0, false
}

// unescape takes backslashes and entities out of an address.
func unescape(in string) string {
	if !strings.ContainsAny(in, `\&`) {
		return in
	}
	var out strings.Builder
	for i := 0; i < len(in); i++ {
		if in[i] == '\\' && i+1 < len(in) && isPunctuation(in[i+1]) {
			i++
		} else if in[i] == '&' {
			if decoded, n := entity(in[i:]); n > 0 {
				out.WriteString(decoded)
				i += n - 1
				continue
			}
		}
		out.WriteByte(in[i])
	}
	return out.String()
}

// definition reads [label]: address "title".
func definition(line string) (label, to string, ok bool) {
	if !strings.HasPrefix(line, "[") {
		return "", "", false
	}
	end := strings.Index(line[:min(len(line), maxLabel+3)], "]:")
	if end < 0 {
		return "", "", false
	}
	label, ok = labelled(line[1:end])
	if !ok {
		return "", "", false
	}
	rest := strings.Trim(line[end+2:], " \t")
	to, n, ok := target(rest)
	if !ok || n == 0 {
		return "", "", false
	}
	rest = strings.TrimLeft(rest[n:], " \t")
	return label, to, title(rest) == len(rest)
}

// angle reads <address>.
func (s *inlines) angle() bool {
	rest := s.in[s.at+1:]
	rest = rest[:min(len(rest), maxLink)]
	end := strings.IndexAny(rest, "> \t\n<")
	if end < 1 || rest[end] != '>' {
		return false
	}
	name := rest[:end]
	to := linkURL(name)
	if strings.Contains(name, "@") && !strings.ContainsAny(name, `:/\`) {
		to = linkURL("mailto:" + name)
	}
	if to == "" {
		return false
	}
	s.link(name, to, s.at+end+2)
	return true
}

func (s *inlines) link(name, to string, end int) {
	s.put(token{kind: anchor, to: to}, end)
	s.out = append(s.out, token{kind: text, text: name}, token{kind: anchorEnd})
}

// bare reads an address that stands in the text by itself.
func (s *inlines) bare() bool {
	if s.at > 0 && !strings.ContainsRune(" \t\n*_~(", rune(s.in[s.at-1])) {
		return false
	}
	rest := s.in[s.at:]
	scheme := ""
	head := strings.ToLower(rest[:min(len(rest), 8)])
	switch {
	case strings.HasPrefix(head, "http://"), strings.HasPrefix(head, "https://"):
	case strings.HasPrefix(head, "www."):
		scheme = "http://"
	default:
		return false
	}
	end := strings.IndexAny(rest, " \t\n<")
	if end < 0 {
		end = len(rest)
	}
	if end > maxLink {
		s.at += end
		return true
	}
	name := trimmed(rest[:end])
	host := name
	if scheme == "" {
		_, host, _ = strings.Cut(name, "//")
	}
	if !strings.Contains(host, ".") {
		return false
	}
	to := linkURL(scheme + name)
	if to == "" {
		return false
	}
	s.link(name, to, s.at+len(name))
	return true
}

// trimmed takes off what ends the sentence rather than the address.
func trimmed(name string) string {
	open, closed := strings.Count(name, "("), strings.Count(name, ")")
	for name != "" {
		switch c := name[len(name)-1]; {
		case strings.IndexByte("?!.,:*_~'\"", c) >= 0:
		case c == ')' && closed > open:
			closed--
		case c == ';':
			at := strings.LastIndexByte(name[max(0, len(name)-34):], '&')
			if at < 0 {
				break
			}
			return trimmed(name[:max(0, len(name)-34)+at])
		default:
			return name
		}
		name = name[:len(name)-1]
	}
	return name
}

// address reads a mail address around the @ here.
func (s *inlines) address() bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	before := s.in[max(s.plain, s.at-64):s.at]
	local := before[len(strings.TrimRight(before, letters+".+-_")):]
	rest := s.in[s.at+1:]
	rest = rest[:min(len(rest), 255)]
	domain := strings.TrimRight(rest[:len(rest)-len(strings.TrimLeft(rest, letters+".-"))], ".-")
	if local == "" || !strings.Contains(domain, ".") {
		return false
	}
	name, end := local+"@"+domain, s.at+1+len(domain)
	s.at -= len(local)
	s.link(name, linkURL("mailto:"+name), end)
	return true
}

// linkURL is an address as an attribute may have it, "" for one that leads to
// something else than a page or a mailbox.
func linkURL(to string) string {
	rest, ok := afterScheme(to, "http://", "https://", "mailto:")
	if !ok || rest == "" || len(to) > maxLink {
		return ""
	}
	var out strings.Builder
	for _, r := range to {
		switch {
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || turns(r):
			return ""
		case strings.ContainsRune(" <>\"`{}|^\\", r):
			out.WriteString("%" + strings.ToUpper(string("0123456789abcdef"[r>>4])+string("0123456789abcdef"[r&15])))
		default:
			out.WriteRune(r)
		}
	}
	return html.EscapeString(out.String())
}

func afterScheme(to string, schemes ...string) (string, bool) {
	for _, s := range schemes {
		if len(to) >= len(s) && strings.EqualFold(to[:len(s)], s) {
			return to[len(s):], true
		}
	}
	return "", false
}

// imageURL is the address of an image that holds its own data, "" for any other.
func imageURL(to string) string {
	data, ok := afterScheme(to, "data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,", "data:image/webp;base64,")
	if !ok || data == "" || strings.Trim(data, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=") != "" {
		return ""
	}
	return to
}
