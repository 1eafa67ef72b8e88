package tomlfile

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// UnknownKey is an unknown key or table of a file.
type UnknownKey struct {
	Name string // dotted; for a key in an inline table it starts at that table
	Line int    // counted from 1
	Like string // the most similar known key or table, dotted; "" if none or several are similar
}

// Unknown lists the keys that Read ignores because the type of into has no field for them,
// in the order of the file. An unknown table represents all its keys. A missing file has no
// unknown keys. Errors: those of Read.
func Unknown(path string, into any) ([]UnknownKey, error) {
	text, err := readSettings(path)
	if text == nil {
		return nil, err
	}
	kind := reflect.TypeOf(into).Elem()
	into = reflect.New(kind).Interface()
	if err := Decode(path, text, into); err != nil {
		return nil, err
	}
	strict := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(into)
	missing, ok := errors.AsType[*toml.StrictMissingError](strict)
	if !ok {
		return nil, nil
	}
	known := keysOf(kind, "")
	var unknown []UnknownKey
	for _, e := range missing.Errors {
		line, _ := e.Position()
		name := strings.Join(e.Key(), ".")
		unknown = append(unknown, UnknownKey{Name: name, Line: line, Like: nearest(name, known)})
	}
	return unknown, nil
}

// keysOf returns the dotted names of a struct's tables and keys.
func keysOf(t reflect.Type, table string) (names []string) {
	for f := range t.Fields() {
		name := f.Tag.Get("toml")
		if name == "" {
			continue
		}
		names = append(names, table+name)
		if f.Type.Kind() == reflect.Struct {
			names = append(names, keysOf(f.Type, table+name+".")...)
		}
	}
	return names
}

// nearest returns the known name that is most similar to a misspelt name. It returns "" if none
// is similar or two are equally similar. Missing or additional leading tables count less than
// letters.
func nearest(name string, known []string) string {
	like, best, several := "", nearness{letters: maxSlips + 1}, false
	for _, k := range known {
		switch n := between(name, k); {
		case n.less(best):
			like, best, several = k, n, false
		case n == best:
			several = true
		}
	}
	if several {
		return ""
	}
	return like
}

// maxSlips is the maximum number of wrong letters in a misspelt name; in short names it is
// a third of the letters.
const maxSlips = 3

// nearness is the difference of two names.
type nearness struct {
	letters int // to change, insert or delete
	tables  int // number of leading tables to remove from both names
}

func (n nearness) less(m nearness) bool {
	return n.letters < m.letters || n.letters == m.letters && n.tables < m.tables
}

// between compares two dotted names, with and without their leading tables. letters is more than
// maxSlips if they are not similar.
func between(a, b string) nearness {
	best := nearness{letters: maxSlips + 1}
	for i, x := range endings(a) {
		for j, y := range endings(b) {
			n := nearness{distance(x, y), i + j}
			if n.letters <= min(len(x), len(y))/3 && n.less(best) {
				best = n
			}
		}
	}
	return best
}

// endings returns a dotted name, the name without its first part, and so on.
func endings(name string) []string {
	out := []string{name}
	for {
		_, rest, more := strings.Cut(name, ".")
		if !more {
			return out
		}
		out, name = append(out, rest), rest
	}
}

// distance returns the number of bytes to change, insert or delete to get from a to b, at
// most maxSlips+1.
func distance(a, b string) int {
	if max(len(a), len(b))-min(len(a), len(b)) > maxSlips {
		return maxSlips + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return min(row[len(b)], maxSlips+1)
}
