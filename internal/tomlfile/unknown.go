package tomlfile

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// UnknownKey is a key or a table of a file that nothing reads.
type UnknownKey struct {
	Name string // dotted; of one in an inline table only from there on
	Line int    // counted from 1
	Like string // the one key or table that it may have been meant to be, dotted; "" if none, or several, are that near
}

// Unknown lists what Read would pass over because a struct of the type of into has
// no field for it, in the order of the file; an unknown table stands for its keys
// too. A missing file has nothing unknown. Errors are those of Read.
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

// keysOf are the dotted names of a struct's tables and keys.
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

// nearest is the known name that a name is likely to be a slip of, "" if none is
// or two are equally. Tables that are missing in front of it, or too many, count
// less than letters.
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

// maxSlips is how many letters a slip of a name may differ in; of short names a
// third may.
const maxSlips = 3

// nearness is by how much two names differ.
type nearness struct {
	letters int // to change, insert or delete
	tables  int // to leave out in front of either
}

func (n nearness) less(m nearness) bool {
	return n.letters < m.letters || n.letters == m.letters && n.tables < m.tables
}

// between compares two dotted names, also without tables in front; letters is more
// than maxSlips if they are not alike.
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

// endings are a dotted name, the same without its first part, and so on.
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

// distance is how many bytes must be changed, inserted or deleted to make b of a,
// maxSlips+1 if that is more than maxSlips.
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
