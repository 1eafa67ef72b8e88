package pathpattern

import "strings"

// sketch is a pattern as a list of segments. Each segment is a list of elements: a
// character, ?, * or a class. The reference below uses it, so it needs no parser. A
// segment {"*", "*"} is deep.
type sketch [][]string

// sketchOf returns the sketch of a text. It uses only slashes and the letters in allowed;
// A to E mean classes. The sketch has at most three segments of at most three elements.
// nil means an empty or invalid pattern.
func sketchOf(text, allowed string) sketch {
	classes := map[rune]string{'A': "[ab]", 'B': "[!a]", 'C': "[.]", 'D': "[!.]", 'E': "[!a-z]"}
	var s sketch
	for part := range strings.SplitSeq(text, "/") {
		var segment []string
		for _, r := range part {
			if !strings.ContainsRune(allowed, r) || len(segment) == 3 {
				continue
			}
			if class := classes[r]; class != "" {
				segment = append(segment, class)
			} else {
				segment = append(segment, string(r))
			}
		}
		if name := strings.Join(segment, ""); name == "." || name == ".." {
			return nil
		}
		if segment != nil && len(s) < 3 {
			s = append(s, segment)
		}
	}
	return s
}

func (s sketch) text() string {
	var segments []string
	for _, segment := range s {
		segments = append(segments, strings.Join(segment, ""))
	}
	return strings.Join(segments, "/")
}

// readings returns the sketch with classes and, if there are any, with their characters;
// both with the ** behind a last segment that descends.
func (s sketch) readings() []sketch {
	var plain sketch
	for _, segment := range s {
		var chars []string
		for _, e := range segment {
			chars = append(chars, strings.Split(e, "")...)
		}
		plain = append(plain, chars)
	}
	if plain.text() == s.text() && !strings.Contains(s.text(), "[") {
		return []sketch{s.descending()}
	}
	return []sketch{s.descending(), plain.descending()}
}

func (s sketch) descending() sketch {
	for _, e := range s[len(s)-1] {
		if e == "*" || e == "?" || len(e) > 1 {
			return s
		}
	}
	return append(append(sketch{}, s...), []string{"*", "*"})
}

func (s sketch) isDeep(i int) bool { return len(s[i]) == 2 && s[i][0] == "*" && s[i][1] == "*" }

func admits(element string, r byte) bool {
	switch element {
	case "?":
		return true
	case "[ab]":
		return r == 'a' || r == 'b'
	case "[!a]":
		return r != 'a'
	case "[.]":
		return r == '.'
	case "[!.]":
		return r != '.'
	case "[!a-z]":
		return r < 'a' || 'z' < r
	}
	return element == string(r)
}

// place is a state of the automaton of a sketch: inside segment seg with the
// elements before pos done, or, with pos -1, in front of it.
type place struct{ seg, pos int }

// free returns the places that can be reached from p without a character.
func (s sketch) free(p place) []place {
	all := []place{p}
	for i := 0; i < len(all); i++ {
		switch q := all[i]; {
		case q.seg == len(s):
		case q.pos < 0 && s.isDeep(q.seg):
			all = append(all, place{q.seg + 1, -1})
		case q.pos >= 0 && !s.isDeep(q.seg) && q.pos < len(s[q.seg]) && s[q.seg][q.pos] == "*":
			all = append(all, place{q.seg, q.pos + 1})
		case q.pos < 0:
			all = append(all, place{q.seg, 0})
		}
	}
	return all
}

// after returns the places that p leads to by one character.
func (s sketch) after(p place, r byte) []place {
	var all []place
	for _, q := range s.free(p) {
		switch {
		case q.seg == len(s):
		case s.isDeep(q.seg) && r == '/':
			if q.pos >= 0 {
				all = append(all, place{q.seg, -1})
			}
		case s.isDeep(q.seg):
			all = append(all, place{q.seg, 0})
		case r == '/':
			if q.pos == len(s[q.seg]) {
				all = append(all, place{q.seg + 1, -1})
			}
		case q.pos < 0 || q.pos == len(s[q.seg]):
		case s[q.seg][q.pos] == "*":
			all = append(all, q)
		case admits(s[q.seg][q.pos], r):
			all = append(all, place{q.seg, q.pos + 1})
		}
	}
	return all
}

// isEnd reports whether a path may end at p.
func (s sketch) isEnd(p place) bool {
	for _, q := range s.free(p) {
		if q.pos < 0 || q.seg == len(s) || !s.isDeep(q.seg) && q.pos < len(s[q.seg]) {
			continue
		}
		rest := q.seg + 1
		for rest < len(s) && s.isDeep(rest) {
			rest++
		}
		if rest == len(s) {
			return true
		}
	}
	return false
}

// covers reports whether a reading covers a path, in the simplest possible code.
func (s sketch) covers(path []string) bool {
	switch {
	case len(s) == 0:
		return len(path) == 0
	case s.isDeep(0):
		return s[1:].covers(path) || len(path) > 0 && s.covers(path[1:])
	}
	return len(path) > 0 && coversText(s[0], path[0]) && s[1:].covers(path[1:])
}

func coversText(elements []string, text string) bool {
	switch {
	case len(elements) == 0:
		return text == ""
	case elements[0] == "*":
		return coversText(elements[1:], text) || text != "" && coversText(elements, text[1:])
	}
	return text != "" && admits(elements[0], text[0]) && coversText(elements[1:], text[1:])
}

// sharesPath searches all pairs of places for one at which both readings end. The third
// part of a state is the text of the present segment so far: nothing, ".", "..", or more.
// The last letter of the alphabet represents all letters that occur in neither sketch.
func (s sketch) sharesPath(t sketch) bool {
	type state struct {
		p, q place
		seen int
	}
	todo := []state{{place{0, -1}, place{0, -1}, 0}}
	done := map[state]bool{}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if done[at] {
			continue
		}
		done[at] = true
		if at.seen == 3 && s.isEnd(at.p) && t.isEnd(at.q) {
			return true
		}
		for _, r := range []byte("/.ab[]!-zZ") {
			seen := 3
			switch {
			case r == '/' && at.seen != 3:
				continue
			case r == '/':
				seen = 0
			case r == '.':
				seen = min(at.seen+1, 3)
			}
			for _, p := range s.after(at.p, r) {
				for _, q := range t.after(at.q, r) {
					todo = append(todo, state{p, q, seen})
				}
			}
		}
	}
	return false
}

// isShownWithin reports whether paths with the given numbers of letters and segments
// suffice to find a common path of two sketches, if there is one. A shortest common path
// has no letter or segment that stars of both sides match.
func isShownWithin(a, b sketch, letters, segments int) bool {
	lettersA, deepA, starA := a.size()
	lettersB, deepB, starB := b.size()
	if starA && starB && lettersA+lettersB > letters {
		return false
	}
	return !deepA || !deepB || len(a)+len(b) <= segments
}

// size returns the maximum number of letters that a segment requires, and whether there
// are ** and segments with *.
func (s sketch) size() (letters int, deep, star bool) {
	r := s.readings()[0]
	for i, segment := range r {
		if r.isDeep(i) {
			deep = true
			continue
		}
		n := 0
		for _, e := range segment {
			if e == "*" {
				star = true
			} else {
				n++
			}
		}
		letters = max(letters, n)
	}
	return letters, deep, star
}
