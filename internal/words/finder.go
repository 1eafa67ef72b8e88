package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Finder finds the words of a question in texts. It caches the words that it has seen, so
// it must be used by one goroutine at a time.
type Finder struct {
	keys    []string       // by their number
	weights []float64      // of the keys
	numbers map[string]int // of the keys
	starts  [256]uint64    // a set of hashes of the first two letters of the keys
	other   bool           // some key is a single byte or does not begin with two ASCII bytes
	met     map[string][]int
}

// NewFinder returns a finder of the given keys, each with the weight of a match. It
// ignores keys with a weight of 0 or less.
func NewFinder(keys map[string]float64) *Finder {
	f := &Finder{numbers: map[string]int{}, met: map[string][]int{}}
	for _, key := range slices.Sorted(mapKeys(keys)) {
		if keys[key] <= 0 || key == "" {
			continue
		}
		f.numbers[key] = len(f.weights)
		f.keys, f.weights = append(f.keys, key), append(f.weights, keys[key])
		if len(key) < 2 || key[0] >= utf8.RuneSelf || key[1] >= utf8.RuneSelf {
			f.other = true
		} else {
			h := hashOf(key[0], key[1])
			f.starts[h/64] |= 1 << (h % 64)
		}
	}
	return f
}

func mapKeys(m map[string]float64) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Place is the position of a key in a text: bytes From to To, exclusive.
type Place struct {
	From, To int
	key      int
}

// Find returns the positions of the keys in a text, in order.
func (f *Finder) Find(text string) (all []Place) {
	if len(f.weights) == 0 {
		return nil
	}
	eachRun(text, func(from, to int) {
		run := text[from:to]
		if !f.mayHold(run) {
			return
		}
		keys, known := f.met[run]
		if !known {
			EachKey(run, func(key string) {
				if n, ok := f.numbers[key]; ok && !slices.Contains(keys, n) {
					keys = append(keys, n)
				}
			})
			f.met[run] = keys
		}
		for _, k := range keys {
			all = append(all, Place{from, to, k})
		}
	})
	return all
}

// mayHold reports whether a run of letters and digits may contain a key. It checks
// whether a part of an identifier can begin with the first two letters of a key. Stemming
// does not change these letters.
func (f *Finder) mayHold(run string) bool {
	if f.other {
		return true
	}
	last := separator
	for i := range len(run) {
		c := run[i]
		if c >= utf8.RuneSelf {
			return true
		}
		class := classOf(rune(c))
		if i+1 < len(run) && (class == upper || (class == digit) != (last == digit) || i == 0) {
			if h := hashOf(small(c), small(run[i+1])); f.starts[h/64]&(1<<(h%64)) != 0 {
				return true
			}
		}
		last = class
	}
	return false
}

// small returns an ASCII byte in lower case, other bytes unchanged.
func small(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// hashOf returns a hash of two ASCII bytes.
func hashOf(a, b byte) uint16 { return uint16(a&127)<<7 | uint16(b&127) }

// Weigh returns the total weight of the keys at some places of one text, and the number
// of different keys. Each key counts once, a repeated one slightly more.
func (f *Finder) Weigh(places []Place) (weight float64, keys int) {
	counts := make([]int, len(f.weights))
	for _, p := range places {
		counts[p.key]++
	}
	for k, n := range counts {
		if n > 0 {
			keys++
			weight += f.weights[k] * 2 * float64(n) / (float64(n) + 1)
		}
	}
	return weight, keys
}

// Key returns the key at a place.
func (f *Finder) Key(p Place) string { return f.keys[p.key] }

// Keys returns the number of keys.
func (f *Finder) Keys() int { return len(f.weights) }

// Excerpted is a part of a text in one line.
type Excerpted struct {
	Text  string   // white space and control characters are single blanks; … marks omitted text
	Marks [][2]int // positions of the question's words, in bytes of Text, in order and disjoint
}

// Excerpt returns the part of a text whose words have the greatest weight, at most limit
// characters including the ellipses. Of equal parts it returns the first. For a text
// without a match it returns the beginning, for a blank text "". limit must be at least
// 10.
func (f *Finder) Excerpt(text string, limit int) Excerpted {
	places := f.Find(text)
	from, to := f.window(text, places, max(limit, 10)-2)
	var b strings.Builder
	out := Excerpted{}
	if strings.TrimSpace(text[:from]) != "" {
		b.WriteRune('…')
	}
	begun := b.Len()
	put := func(part string) {
		for _, r := range part {
			if unicode.IsSpace(r) || unicode.IsControl(r) {
				if s := b.String(); len(s) == begun || s[len(s)-1] == ' ' {
					continue
				}
				r = ' '
			}
			b.WriteRune(r)
		}
	}
	next := from
	for _, p := range places {
		if p.From < next || p.To > to {
			continue
		}
		put(text[next:p.From])
		at := b.Len()
		put(text[p.From:p.To])
		out.Marks = append(out.Marks, [2]int{at, b.Len()})
		next = p.To
	}
	put(text[next:to])
	out.Text = strings.TrimRight(b.String(), " ")
	if strings.TrimSpace(text[to:]) != "" {
		out.Text += "…"
	}
	return out
}

// window returns the part of a text, within size characters and between words, that an
// excerpt shows.
func (f *Finder) window(text string, places []Place, size int) (from, to int) {
	if utf8.RuneCountInString(text) <= size+2 {
		return 0, len(text)
	}
	best, first, last := f.closest(places, size)
	if best == 0 {
		start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
		return start, wordEnd(text, forward(text, start, size))
	}
	from, to = places[first].From, places[last].To
	room := max(0, size-utf8.RuneCountInString(text[from:to]))
	before := backward(text, from, room/3)
	after := forward(text, to, room-utf8.RuneCountInString(text[before:from]))
	if left := room - utf8.RuneCountInString(text[before:from]) - utf8.RuneCountInString(text[to:after]); left > 0 {
		before = backward(text, before, left)
	}
	return wordStart(text, before, from), max(to, wordEnd(text, after))
}

// Closest returns the greatest total weight of keys within size bytes. Each key counts
// once.
func (f *Finder) Closest(places []Place, size int) float64 {
	best, _, _ := f.closest(places, size)
	return best
}

// closest also returns the first and the last of these places.
func (f *Finder) closest(places []Place, size int) (best float64, first, last int) {
	counts := make([]int, len(f.weights))
	weight := 0.0
	for start, end := 0, 0; start < len(places); start++ {
		for end < len(places) && (end == start || places[end].To-places[start].From <= size) {
			if counts[places[end].key]++; counts[places[end].key] == 1 {
				weight += f.weights[places[end].key]
			}
			end++
		}
		if weight > best {
			best, first, last = weight, start, end-1
		}
		if counts[places[start].key]--; counts[places[start].key] == 0 {
			weight -= f.weights[places[start].key]
		}
	}
	return best, first, last
}

// forward returns the offset n characters after at, backward the one before it.
func forward(text string, at, n int) int {
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

func backward(text string, at, n int) int {
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}

// nearWord is the maximum number of bytes by which an excerpt is shortened to end between
// words.
const nearWord = 20

// wordStart moves the start of an excerpt after the word that it would cut.
func wordStart(text string, at, most int) int {
	if at == 0 {
		return 0
	}
	if i := strings.IndexFunc(text[at:min(most, at+nearWord)], unicode.IsSpace); i >= 0 {
		return at + i
	}
	return at
}

// wordEnd moves the end of an excerpt before the word that it would cut.
func wordEnd(text string, at int) int {
	if at == len(text) {
		return at
	}
	low := max(0, at-nearWord)
	if i := strings.LastIndexFunc(text[low:at], unicode.IsSpace); i >= 0 {
		return low + i
	}
	return at
}
