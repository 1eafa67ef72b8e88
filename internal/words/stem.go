package words

import "strings"

// Stem returns the stem of a lower-case word as FTS5's porter tokenizer computes it, for
// parts that store stems. Words with other than ASCII letters stay unchanged.
func Stem(word string) string { return stem(word) }

// stem returns the Porter stem of a lower-case word, like FTS5's porter tokenizer: only
// words of three to 63 ASCII letters are stemmed.
func stem(word string) string {
	if len(word) < 3 || len(word) >= 64 {
		return word
	}
	s := stemmer{b: []byte(word)}
	s.step1()
	s.suffixes(step2(), 0)
	s.suffixes(step3(), 0)
	s.step4()
	s.step5()
	return string(s.b)
}

type stemmer struct{ b []byte }

func (s *stemmer) ends(suffix string) bool {
	return len(s.b) > len(suffix) && strings.HasSuffix(string(s.b), suffix)
}

// cut returns the length without a suffix.
func (s *stemmer) cut(suffix string) int { return len(s.b) - len(suffix) }

func (s *stemmer) vowel(i int) bool {
	switch s.b[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	case 'y':
		return i > 0 && !s.vowel(i-1)
	}
	return false
}

// measure counts the changes from vowels to consonants in the first n letters.
func (s *stemmer) measure(n int) (m int) {
	last := false
	for i := range n {
		v := s.vowel(i)
		if last && !v {
			m++
		}
		last = v
	}
	return m
}

func (s *stemmer) hasVowel(n int) bool {
	for i := range n {
		if s.vowel(i) {
			return true
		}
	}
	return false
}

// double reports whether the first n letters end in the same consonant twice.
func (s *stemmer) double(n int) bool {
	return n > 1 && s.b[n-1] == s.b[n-2] && !s.vowel(n-1)
}

// short reports whether the first n letters end in consonant, vowel, consonant,
// the last not w, x or y.
func (s *stemmer) short(n int) bool {
	return n > 2 && !s.vowel(n-3) && s.vowel(n-2) && !s.vowel(n-1) && !strings.ContainsRune("wxy", rune(s.b[n-1]))
}

func (s *stemmer) replace(suffix, by string) { s.b = append(s.b[:s.cut(suffix)], by...) }

func (s *stemmer) step1() {
	switch {
	case s.ends("sses"):
		s.replace("sses", "ss")
	case s.ends("ies"):
		s.replace("ies", "i")
	case s.ends("ss"):
	case s.ends("s"):
		s.replace("s", "")
	}
	switch {
	case s.ends("eed"):
		if s.measure(s.cut("eed")) > 0 {
			s.replace("eed", "ee")
		}
	case s.ends("ed") && s.hasVowel(s.cut("ed")):
		s.replace("ed", "")
		s.restore()
	case s.ends("ing") && s.hasVowel(s.cut("ing")):
		s.replace("ing", "")
		s.restore()
	}
	if s.ends("y") && s.hasVowel(s.cut("y")) {
		s.replace("y", "i")
	}
}

// restore repairs the word after ed or ing was removed.
func (s *stemmer) restore() {
	n := len(s.b)
	switch {
	case s.ends("at"), s.ends("bl"), s.ends("iz"):
		s.b = append(s.b, 'e')
	case s.double(n) && !strings.ContainsRune("lsz", rune(s.b[n-1])):
		s.b = s.b[:n-1]
	case s.measure(n) == 1 && s.short(n):
		s.b = append(s.b, 'e')
	}
}

func step2() [][2]string {
	return [][2]string{
		{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"}, {"logi", "log"},
		{"bli", "ble"}, {"alli", "al"}, {"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"}, {"ization", "ize"}, {"ation", "ate"},
		{"ator", "ate"}, {"alism", "al"}, {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},
		{"iviti", "ive"}, {"biliti", "ble"},
	}
}

func step3() [][2]string {
	return [][2]string{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""},
	}
}

// suffixes replaces the first suffix that the word ends in, if the rest is long enough.
func (s *stemmer) suffixes(list [][2]string, above int) {
	for _, p := range list {
		if s.ends(p[0]) {
			if s.measure(s.cut(p[0])) > above {
				s.replace(p[0], p[1])
			}
			return
		}
	}
}

func (s *stemmer) step4() {
	for _, suffix := range [...]string{
		"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
		"ous", "ive", "ize",
	} {
		if !s.ends(suffix) {
			continue
		}
		n := s.cut(suffix)
		if suffix == "ion" && s.b[n-1] != 's' && s.b[n-1] != 't' {
			return
		}
		if s.measure(n) > 1 {
			s.b = s.b[:n]
		}
		return
	}
}

func (s *stemmer) step5() {
	if n := len(s.b) - 1; s.b[n] == 'e' {
		if m := s.measure(n); m > 1 || m == 1 && !s.short(n) {
			s.b = s.b[:n]
		}
	}
	if n := len(s.b); s.b[n-1] == 'l' && s.double(n) && s.measure(n) > 1 {
		s.b = s.b[:n-1]
	}
}
