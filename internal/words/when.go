package words

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Period is a time range in a question: From, inclusive, to To, exclusive.
type Period struct {
	From, To time.Time
	Said     string // the words that express it
}

// CutPeriod removes an English time expression from a question. It returns the rest of
// the question and the period, relative to now in now's time zone: yesterday, last week,
// this morning, two days ago, in January, January 5, 5–7 January 2026, 2026-01-05, on
// Monday, end of March, the weekend of May 3, since Tuesday, before 1 May. ok is false,
// and rest the question, if it has none. A month or day without a year, and a weekday,
// means the latest one that has begun. If there are several expressions, the first
// determines the period and the others stay in the question.
func CutPeriod(question string, now time.Time) (rest string, p Period, ok bool) {
	r := periodReader{text: question, now: now, today: midnight(now)}
	r.split()
	for i := range r.words {
		for _, read := range []func(int) (span, int){
			r.isoDate, r.nearDay, r.ago, r.part, r.between, r.date, r.relative, r.weekday, r.month, r.year,
		} {
			s, n := read(i)
			if n == 0 {
				continue
			}
			first, s := r.lead(i, s)
			from, to := r.words[first].from, r.words[i+n-1].to
			p = Period{s.from, s.to, question[from:to]}
			return strings.TrimSpace(strings.TrimRightFunc(question[:from], unicode.IsSpace) + question[to:]), p, true
		}
	}
	return question, p, false
}

type span struct{ from, to time.Time }

func days(from time.Time, n int) span { return span{from, from.AddDate(0, 0, n)} }

func midnight(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, t.Location())
}

// periodWord is a run of letters or of digits, in lower case.
type periodWord struct {
	text     string
	from, to int  // in bytes of the question
	capital  bool // it begins with a capital
	joined   bool // only - or / or – is between it and the word before
}

type periodReader struct {
	text       string
	words      []periodWord
	now, today time.Time
}

func (r *periodReader) split() {
	last := separator
	start := 0
	end := func(at int) {
		if last != separator {
			w := periodWord{text: strings.ToLower(r.text[start:at]), from: start, to: at, capital: r.text[start] >= 'A' && r.text[start] <= 'Z'}
			if n := len(r.words); n > 0 {
				w.joined = slices.Contains([]string{"-", "/", "–"}, r.text[r.words[n-1].to:start])
			}
			r.words = append(r.words, w)
		}
	}
	for at, c := range r.text {
		class := classOf(c)
		if class == upper {
			class = lower
		}
		if class != last {
			end(at)
			start, last = at, class
		}
	}
	end(len(r.text))
}

// at returns the word at a place, "" outside.
func (r *periodReader) at(i int) string {
	if i < 0 || i >= len(r.words) {
		return ""
	}
	return r.words[i].text
}

// number returns the number at a place, -1 for none.
func (r *periodReader) number(i int) int {
	w := r.at(i)
	if n := slices.Index([]string{"", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}, w); n > 0 {
		return n
	}
	switch w {
	case "a", "an":
		return 1
	case "couple":
		return 2
	case "few":
		return 3
	}
	return r.digits(i, 3)
}

// digits returns the number with at most the given number of digits, or -1.
func (r *periodReader) digits(i, most int) int {
	w := r.at(i)
	n, err := strconv.Atoi(w)
	if err != nil || len(w) > most {
		return -1
	}
	return n
}

func (r *periodReader) isYear(i int) bool {
	n := r.digits(i, 4)
	return n >= 1990 && n < 2200
}

// lead extends an expression by its leading words and applies their effect.
func (r *periodReader) lead(i int, s span) (first int, out span) {
	end := r.today.AddDate(0, 0, 1)
	for ; i > 0; i-- {
		switch r.at(i - 1) {
		case "since":
			s.to = end
		case "after":
			if s.from, s.to = s.to, end; !s.from.Before(s.to) {
				s.to = s.from.AddDate(0, 0, 1)
			}
		case "before", "until":
			s.from, s.to = time.Time{}, s.from
		case "on", "in", "at", "from", "during", "of", "over", "by", "around", "about", "for", "the", "dated", "within":
		default:
			return i, s
		}
	}
	return i, s
}

// isoDate reads 2026-01-05 and 2026-01.
func (r *periodReader) isoDate(i int) (s span, n int) {
	if !r.isYear(i) || i+1 >= len(r.words) || !r.words[i+1].joined {
		return s, 0
	}
	month := r.digits(i+1, 2)
	if month < 1 || month > 12 {
		return s, 0
	}
	if day := r.digits(i+2, 2); day >= 1 && day <= 31 && r.words[i+2].joined {
		return days(r.day(r.digits(i, 4), time.Month(month), day), 1), 3
	}
	from := r.day(r.digits(i, 4), time.Month(month), 1)
	return span{from, from.AddDate(0, 1, 0)}, 2
}

func (r *periodReader) day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, r.now.Location())
}

// nearDay reads today, yesterday, last night and the like.
func (r *periodReader) nearDay(i int) (s span, n int) {
	n = 1
	switch w := r.at(i); {
	case w == "today":
		s = days(r.today, 1)
	case w == "tonight":
		s = days(r.today, 1)
	case w == "yesterday":
		s = days(r.today.AddDate(0, 0, -1), 1)
	case w == "day" && r.at(i+1) == "before" && r.at(i+2) == "yesterday":
		return days(r.today.AddDate(0, 0, -2), 1), 3
	case w == "last" && r.at(i+1) == "night":
		return span{r.today.Add(-6 * time.Hour), r.today.Add(6 * time.Hour)}, 2
	case w == "this" && slices.Contains([]string{"morning", "afternoon", "evening"}, r.at(i+1)):
		s, i, n = days(r.today, 1), i+1, 2
		return r.timeOfDay(i, s), n
	default:
		return s, 0
	}
	if in := r.timeOfDay(i+1, s); in != s {
		return in, 2
	}
	return s, n
}

// timeOfDay returns the part of a day that a word names.
func (r *periodReader) timeOfDay(i int, s span) span {
	switch r.at(i) {
	case "morning":
		s.to = s.from.Add(12 * time.Hour)
	case "afternoon":
		s.from, s.to = s.from.Add(12*time.Hour), s.from.Add(18*time.Hour)
	case "evening", "night":
		s.from = s.from.Add(17 * time.Hour)
	}
	return s
}

// ago reads two days ago, a week ago, a couple of months ago.
func (r *periodReader) ago(i int) (s span, n int) {
	k, unit := r.number(i), i+1
	if r.at(i) == "a" && (r.at(unit) == "couple" || r.at(unit) == "few") {
		k, unit = r.number(unit), unit+1
	}
	if r.at(unit) == "of" {
		unit++
	}
	if k < 1 || r.at(unit+1) != "ago" {
		return s, 0
	}
	switch strings.TrimSuffix(r.at(unit), "s") {
	case "minute", "hour":
		s = span{r.now.Add(-time.Duration(k+1) * time.Hour), r.now}
	case "day":
		s = days(r.today.AddDate(0, 0, -k), 1)
	case "week":
		s = days(monday(r.today).AddDate(0, 0, -7*k), 7)
	case "month":
		first := r.day(r.today.Year(), r.today.Month()-time.Month(k), 1)
		s = span{first, first.AddDate(0, 1, 0)}
	case "year":
		s = span{r.day(r.today.Year()-k, 1, 1), r.day(r.today.Year()-k+1, 1, 1)}
	default:
		return s, 0
	}
	return s, unit + 2 - i
}

func monday(day time.Time) time.Time {
	return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
}

// part reads the early, middle or last part of a month or week: end of January, mid
// March, first week of May, the weekend of May 3.
func (r *periodReader) part(i int) (s span, n int) {
	at := i
	half := r.at(i)
	switch half {
	case "beginning", "start", "end", "middle", "early", "mid", "late", "weekend", "week":
		at++
	case "first", "second", "third", "fourth", "last":
		if w := r.at(i + 1); w != "half" && w != "week" {
			return s, 0
		}
		half, at = half+" "+r.at(i+1), i+2
	default:
		return s, 0
	}
	for r.at(at) == "of" || r.at(at) == "the" {
		at++
	}
	if half == "weekend" || half == "week" {
		inner, k := r.date(at)
		if k == 0 {
			return s, 0
		}
		if s = days(monday(inner.from), 7); half == "weekend" {
			s = days(s.from.AddDate(0, 0, 5), 2)
		}
		return s, at + k - i
	}
	whole, k := r.relative(at)
	if k == 0 {
		whole, k = r.month(at)
	}
	if k == 0 {
		return s, 0
	}
	return partOf(half, whole), at + k - i
}

func partOf(name string, s span) span {
	all := int(s.to.Sub(s.from).Hours()+12) / 24
	cut := func(from, to int) span { return span{s.from.AddDate(0, 0, from), s.from.AddDate(0, 0, to)} }
	switch name {
	case "beginning", "start", "early":
		return cut(0, (all+2)/3)
	case "middle", "mid":
		return cut(all*3/10, all-all*3/10)
	case "end", "late":
		return cut(all-(all+2)/3, all)
	case "first half":
		return cut(0, (all+1)/2)
	case "second half", "last half":
		return cut(all/2, all)
	case "last week":
		return cut(all-7, all)
	}
	week := max(0, slices.Index([]string{"first week", "second week", "third week", "fourth week"}, name))
	return cut(7*week, 7*week+7)
}

var monthNames = [...]string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}

// monthAt returns the month that a word names, 0 for none. Words that are verbs as well
// need a capital.
func (r *periodReader) monthAt(i int) time.Month {
	w := r.at(i)
	if len(w) < 3 || (w == "may" || w == "march" || w == "mar") && !r.words[i].capital && r.at(i-1) != "in" && r.at(i-1) != "of" {
		return 0
	}
	for k, name := range monthNames {
		if w == name || w == name[:3] || w == "sept" && k == 8 {
			return time.Month(k + 1)
		}
	}
	return 0
}

// latest returns the latest date with this day or month that has begun, or the one in the
// given year.
func (r *periodReader) latest(month time.Month, day, year int) time.Time {
	if year > 0 {
		return r.day(year, month, day)
	}
	if t := r.day(r.today.Year(), month, day); !t.After(r.today) {
		return t
	}
	return r.day(r.today.Year()-1, month, day)
}

// dayNumber returns the day of a month at a place and the number of its words.
func (r *periodReader) dayNumber(i int) (day, n int) {
	day = r.digits(i, 2)
	if day < 1 || day > 31 {
		return 0, 0
	}
	if w := r.at(i + 1); w == "st" || w == "nd" || w == "rd" || w == "th" {
		return day, 2
	}
	return day, 1
}

// lastDay returns the last day of a range that continues at a place, and the place after
// it: 5-7, 5 to 7, 5 and 6, 5 6.
func (r *periodReader) lastDay(at, first int) (last, next int) {
	j := at
	switch r.at(j) {
	case "to", "and", "until":
		j++
	}
	if day, k := r.dayNumber(j); k > 0 && day > first {
		return day, j + k
	}
	return first, at
}

// date reads January 5, Jan 5th 2026, 5 January, the 5th of January, January 5-7.
func (r *periodReader) date(i int) (s span, n int) {
	month, at := r.monthAt(i), i+1
	var first, last, k int
	if month > 0 {
		if first, k = r.dayNumber(at); k == 0 {
			return s, 0
		}
		at += k
		last, at = r.lastDay(at, first)
	} else {
		if first, k = r.dayNumber(i); k == 0 {
			return s, 0
		}
		last, at = r.lastDay(i+k, first)
		if r.at(at) == "of" {
			at++
		}
		if month = r.monthAt(at); month == 0 {
			return s, 0
		}
		at++
	}
	year := 0
	if r.isYear(at) {
		year, at = r.digits(at, 4), at+1
	}
	return days(r.latest(month, first, year), last-first+1), at - i
}

// between reads between January 5 and January 7, from May 30 to June 2.
func (r *periodReader) between(i int) (s span, n int) {
	if w := r.at(i); w != "between" && w != "from" {
		return s, 0
	}
	if s, n = r.date(i + 1); n > 0 && s.to.Sub(s.from) > 36*time.Hour {
		return s, n + 1
	}
	link := r.at(i + 1 + n)
	if n == 0 || link != "and" && link != "to" && link != "until" {
		return s, 0
	}
	last, k := r.date(i + 2 + n)
	if k == 0 {
		return s, 0
	}
	for !r.isYear(i+n) && r.isYear(i+1+n+k) && last.from.Before(s.from) { // between May 1 and May 3 2023
		s.from = s.from.AddDate(-1, 0, 0)
	}
	if !last.from.After(s.from) {
		return s, 0
	}
	return span{s.from, last.to}, n + 2 + k
}

// relative reads last week, this month, the past three days, last weekend.
func (r *periodReader) relative(i int) (s span, n int) {
	back := 0
	switch r.at(i) {
	case "last", "previous":
		back = 1
	case "past":
		back = 1
	case "this", "current":
	default:
		return s, 0
	}
	if k := r.number(i + 1); k > 0 && back == 1 {
		tomorrow := r.today.AddDate(0, 0, 1)
		at := i + 2
		if r.at(at) == "of" {
			at++
		}
		switch strings.TrimSuffix(r.at(at), "s") {
		case "hour":
			return span{r.now.Add(-time.Duration(k) * time.Hour), tomorrow}, at + 1 - i
		case "day":
			return span{r.today.AddDate(0, 0, -k), tomorrow}, at + 1 - i
		case "week":
			return span{r.today.AddDate(0, 0, -7*k), tomorrow}, at + 1 - i
		case "month":
			return span{r.today.AddDate(0, -k, 0), tomorrow}, at + 1 - i
		}
		return s, 0
	}
	switch w := r.at(i + 1); {
	case w == "week":
		s = days(monday(r.today).AddDate(0, 0, -7*back), 7)
	case w == "weekend":
		saturday := monday(r.today).AddDate(0, 0, 5)
		if saturday.After(r.today) || back == 1 && r.today.Weekday() != time.Monday && !saturday.Before(r.today.AddDate(0, 0, -1)) {
			saturday = saturday.AddDate(0, 0, -7)
		}
		s = days(saturday, 2)
	case w == "month":
		first := r.day(r.today.Year(), r.today.Month()-time.Month(back), 1)
		s = span{first, first.AddDate(0, 1, 0)}
	case w == "year":
		s = span{r.day(r.today.Year()-back, 1, 1), r.day(r.today.Year()-back+1, 1, 1)}
	case r.monthAt(i+1) > 0:
		s, n = r.month(i + 1)
		return s, n + 1
	default:
		if s, n = r.weekday(i + 1); n > 0 {
			return s, n + 1
		}
		return s, 0
	}
	return s, 2
}

// weekday reads the name of a day of the week: the latest before today.
func (r *periodReader) weekday(i int) (s span, n int) {
	k := slices.Index([]string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}, r.at(i))
	if k < 0 {
		return s, 0
	}
	for _, read := range []func(int) (span, int){r.isoDate, r.ago, r.date} { // Friday, January 30
		if s, n = read(i + 1); n > 0 {
			return s, n + 1
		}
	}
	back := (int(r.today.Weekday()) - k + 7) % 7
	if back == 0 {
		back = 7
	}
	return days(r.today.AddDate(0, 0, -back), 1), 1
}

// month reads the name of a month with or without a year.
func (r *periodReader) month(i int) (s span, n int) {
	month := r.monthAt(i)
	if month == 0 {
		return s, 0
	}
	year, n := 0, 1
	if r.isYear(i + 1) {
		year, n = r.digits(i+1, 4), 2
	}
	first := r.latest(month, 1, year)
	return span{first, first.AddDate(0, 1, 0)}, n
}

// year reads a year after a preposition.
func (r *periodReader) year(i int) (s span, n int) {
	if !r.isYear(i) || !slices.Contains([]string{"in", "during", "since", "before", "after", "of"}, r.at(i-1)) {
		return s, 0
	}
	y := r.digits(i, 4)
	return span{r.day(y, 1, 1), r.day(y+1, 1, 1)}, 1
}
