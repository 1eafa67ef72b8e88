package redact

import (
	"strings"

	"cairn/internal/redact/looks"
	"cairn/internal/redact/shape"
)

// entropyLimits contains the minimum length and entropy per byte of a word that is
// redacted for its entropy alone.
type entropyLimits struct {
	length int
	bits   float64
	off    bool
}

// breaks is true for the bytes that end a word: white space, quotes, brackets, comma and
// semicolon.
var breaks = [256]bool{
	0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 11: true, 12: true, 13: true,
	14: true, 15: true, 16: true, 17: true, 18: true, 19: true, 20: true, 21: true, 22: true, 23: true, 24: true, 25: true, 26: true,
	27: true, 28: true, 29: true, 30: true, 31: true, ' ': true, 0x7f: true,
	'"': true, '\'': true, '`': true, '(': true, ')': true, '[': true, ']': true, '{': true, '}': true, '<': true, '>': true, ',': true, ';': true,
}

// isBreak reports whether c ends a word.
func isBreak(c byte) bool { return breaks[c] }

// words checks every long word of the text, and rows of short ones.
func (s *scan) words() {
	const shortest = 16
	t := s.text
	s.sorted = len(s.spans)
	sortSpans(s.spans)
	start := 0
	short := 0 // number of consecutive words as long as those of seed phrases
	for i := 0; i <= len(t); i++ {
		if i < len(t) && !breaks[t[i]] {
			continue
		}
		switch n := i - start; {
		case n >= shortest:
			s.longWord(start, i)
			short = 0
		case n == 0 || shape.IsDigit(t[start]): // "12." before a word
		case looks.SeedShortest <= n && n <= looks.SeedLongest:
			if short++; short >= seedPhraseWords && i > s.seedEnd {
				short = s.seedPhrase(i)
			}
		default:
			short = 0
		}
		start = i + 1
	}
}

func (s *scan) longWord(start, end int) {
	s.rareShapes(start, end)
	word := strings.TrimRight(s.text[start:end], ".:!?")
	l := s.f.entropy
	if l.off || len(word) < l.length || !looks.Spread(word, l.bits) {
		return
	}
	if n := looks.DocumentEnd(word); n > 0 {
		start, word = start+n, word[n:]
		if len(word) < l.length {
			return
		}
	}
	r := looks.Strangest(word)
	if l.bits < 4 && !r.Strange(word, 12, 20) || l.bits >= 4 && !r.Strange(word, 16, 28) || looks.Shannon(word) < l.bits {
		return
	}
	from, to := r.Whole(word)
	s.add("entropy", s.afterName(start+from, start+to), start+to)
}

// afterName returns the start of a secret in the random text[start:end]. It returns start,
// or the start of a secret that another rule found there after its name or the host of a
// URL.
func (s *scan) afterName(start, end int) int {
	for s.nextSpan < s.sorted && s.spans[s.nextSpan].end <= start {
		s.nextSpan++
	}
	if s.nextSpan == s.sorted {
		return start
	}
	first := s.spans[s.nextSpan].start
	if first <= start || first >= end || looks.Strangest(s.text[start:first]).Strange(s.text[start:first], 16, 28) {
		return start
	}
	return first
}

// rareShapes searches a long word for secrets whose shape does not begin with a literal
// of three bytes.
func (s *scan) rareShapes(start, end int) {
	t := s.text
	for i := start; i+1 < end; i++ {
		switch t[i] {
		case 's':
			s.vaultToken(i)
		case 'S':
			s.twilioKey(i)
		case 'Q':
			s.azureSecret(start, i)
		case ':':
			s.telegram(i)
			s.asana(start, i)
		case '/':
			s.oldAsana(i)
		case '-':
			s.mailgun(i)
		case '|', '%':
			s.facebook(i)
		}
	}
}

// vaultToken handles "s." before 24 letters and digits.
func (s *scan) vaultToken(i int) {
	if s.text[i+1] != '.' || !shape.WordStart(s.text, i) {
		return
	}
	if last, ok := shape.Match(s.text, i+2, "a24"); ok && strings.ContainsAny(s.text[i+2:last], "0123456789") && looks.Strangest(s.text[i+2:last]).HalfBits >= 16 {
		s.add("vault_token", i, last)
	}
}

// twilioKey handles "SK" before 32 hexadecimal digits.
func (s *scan) twilioKey(i int) {
	if s.text[i+1] != 'K' {
		return
	}
	if last, ok := shape.Match(s.text, i+2, "X32+"); ok {
		s.add("twilio_api_key", i, last)
	}
}

// azureSecret handles "Q~" after three letters and a digit in the word that begins at
// start.
func (s *scan) azureSecret(start, i int) {
	const shortest, longest = 31, 40
	if s.text[i+1] != '~' || i < start+4 || !shape.IsDigit(s.text[i-1]) {
		return
	}
	last := shape.Skip(s.text, i+2, longest, func(c byte) bool { return shape.IsWord(c) || c == '.' || c == '~' || c == '-' })
	if last-i-2 >= shortest {
		s.add("azure_client_secret", i-4, last)
	}
}

// telegram handles a colon within digits and a bot's 35 letters.
func (s *scan) telegram(colon int) {
	first := shape.Back(s.text, colon, 17, shape.IsDigit)
	n := colon - first
	last, ok := shape.Match(s.text, colon+1, "b35")
	if !ok || n < 8 || n > 16 || !shape.WordStart(s.text, first) && !strings.HasSuffix(s.text[:first], "/bot") {
		return
	}
	if body := s.text[colon+1 : last]; body[0] == 'A' || !looks.IsName(body) && looks.Strangest(body).HalfBits >= 16 {
		s.add("telegram_token", first, last)
	}
}

// facebook handles the bar between an application's number and its secret.
func (s *scan) facebook(bar int) {
	first, ok := shape.MatchBack(s.text, bar, "d15")
	if !ok {
		return
	}
	if last, ok := shape.Match(s.text, bar+1, "b27-40"); ok && !looks.IsName(s.text[bar+1:last]) {
		s.add("facebook_token", shape.Back(s.text, first, 1, shape.IsDigit), last)
	}
}

// asana handles the colon of an Asana token, 1/n: or 2/n/n: followed by 32 hexadecimal
// digits. The word with the token begins at start.
func (s *scan) asana(start, colon int) {
	const fewest = 10 // digits of a number
	if colon == start || !shape.IsDigit(s.text[colon-1]) {
		return
	}
	last, ok := shape.Match(s.text, colon+1, "X32")
	if !ok {
		return
	}
	first := colon
	for n := 0; n < 2; n++ {
		digits := shape.Back(s.text, first, 20, shape.IsDigit)
		if first-digits < fewest || digits < start+2 || s.text[digits-1] != '/' {
			return
		}
		first = digits - 1
		if c := s.text[first-1]; (c == '1' || c == '2') && shape.WordStart(s.text, first-1) {
			s.add("asana_token", first-1, last)
			return
		}
	}
}

// oldAsana handles "0/" before 32 hexadecimal digits.
func (s *scan) oldAsana(slash int) {
	t := s.text
	if slash == 0 || t[slash-1] != '0' || slash > 1 && (shape.IsWord(t[slash-2]) || strings.IndexByte("/-.\\", t[slash-2]) >= 0) {
		return
	}
	if last, ok := shape.Match(t, slash+1, "x32"); ok && (last == len(t) || strings.IndexByte("/-.", t[last]) < 0) {
		s.add("asana_token", slash-1, last)
	}
}

// mailgun handles the first hyphen of 32, 8 and 8 hexadecimal digits.
func (s *scan) mailgun(hyphen int) {
	t := s.text
	if hyphen < 32 || len(t) < hyphen+18 || t[hyphen+9] != '-' || !shape.IsHex(t[hyphen-1]) {
		return
	}
	last, ok := shape.Match(t, hyphen+1, "x8'-'x8")
	if !ok || last < len(t) && t[last] == '-' {
		return
	}
	if first, ok := shape.MatchBack(t, hyphen, "x32"); ok && shape.WordStart(t, first) && (first == 0 || t[first-1] != '-') {
		s.add("mailgun_key", first, last)
	}
}
