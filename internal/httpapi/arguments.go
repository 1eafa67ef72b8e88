package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
)

// arguments are the members of a JSON body, or the parameters of a query. A handler takes each
// argument by its name: the method returns and removes it. Remaining arguments are rejected
// (memories §5.3). After the first error, all further arguments read as omitted.
type arguments struct {
	values map[string]json.RawMessage
	err    error
}

// invalid returns the error for an invalid field.
func invalid(field, message string) error {
	e := fault.New(fault.Invalid, memory.CodeInvalid, message).WithHint("change " + field + " and call again")
	e.Details = map[string]any{"field": field}
	return e
}

// bodyArguments reads a body: a JSON object without duplicate names, or nothing.
func bodyArguments(body []byte) (*arguments, error) {
	a := &arguments{values: map[string]json.RawMessage{}}
	if len(body) == 0 {
		return a, nil
	}
	if !utf8.Valid(body) {
		return nil, invalid("body", "the body is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, invalid("body", "the body is not a JSON object")
	}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		var value json.RawMessage
		if err == nil && ok {
			err = d.Decode(&value)
		}
		if err != nil || !ok {
			return nil, invalid("body", "the body is not JSON")
		}
		if _, twice := a.values[name]; twice {
			return nil, invalid(truncate50(name), truncate50(name)+" is given twice")
		}
		a.values[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, invalid("body", "the body is not JSON")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("body", "the body has data after the JSON object")
	}
	return a, nil
}

// truncate50 returns at most 50 characters of a name, for messages.
func truncate50(name string) string {
	if runes := []rune(name); len(runes) > 50 {
		name = string(runes[:50])
	}
	return name
}

// queryParameters reads a query. Values are texts. The names in repeatable have lists of
// texts.
func queryParameters(query string, repeatable ...string) (*arguments, error) {
	a := &arguments{values: map[string]json.RawMessage{}}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, invalid("query", "the query cannot be read")
	}
	for name, given := range values {
		list := slices.Contains(repeatable, name)
		if len(given) > 1 && !list {
			return nil, invalid(truncate50(strings.ToValidUTF8(name, "?")), truncate50(strings.ToValidUTF8(name, "?"))+" is given twice")
		}
		var texts []json.RawMessage
		for _, text := range given {
			if !utf8.ValidString(text) {
				return nil, invalid(truncate50(strings.ToValidUTF8(name, "?")), "a parameter is not valid UTF-8")
			}
			quoted, err := encode(text)
			if err != nil {
				return nil, err
			}
			texts = append(texts, quoted)
		}
		if a.values[name] = texts[0]; list {
			if a.values[name], err = encode(texts); err != nil {
				return nil, err
			}
		}
	}
	return a, nil
}

func (a *arguments) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// take removes a value and returns it. It returns nil if the value is omitted or null.
func (a *arguments) take(name string) json.RawMessage {
	value := a.values[name]
	delete(a.values, name)
	if string(value) == "null" {
		return nil
	}
	return value
}

// text returns a text argument. there is false if it is omitted.
func (a *arguments) text(name string) (text string, there bool) {
	value := a.take(name)
	if value == nil {
		return "", false
	}
	if value[0] != '"' || json.Unmarshal(value, &text) != nil {
		a.fail(invalid(name, name+" must be a string"))
		return "", false
	}
	if err := rules.CheckJSON(name, value); err != nil {
		a.fail(err)
		return "", false
	}
	return text, true
}

// string returns a text argument, "" if it is omitted.
func (a *arguments) string(name string) string {
	text, _ := a.text(name)
	return text
}

// id returns a text argument, "" if it is omitted. A given text must not be empty.
func (a *arguments) id(name string) string {
	text, there := a.text(name)
	if there && text == "" {
		a.fail(invalid(name, name+" is empty"))
	}
	return text
}

// required returns a text argument that must be given and not empty.
func (a *arguments) required(name string) string {
	text, there := a.text(name)
	if !there || text == "" {
		a.fail(invalid(name, name+" is required"))
	}
	return text
}

// integer returns a whole number, nil if it is omitted. A number beyond 64 bits becomes the
// nearest 64-bit number.
func (a *arguments) integer(name string) *int64 {
	value := a.take(name)
	if value == nil {
		return nil
	}
	n, ok := integerOf(value)
	if !ok {
		a.fail(invalid(name, name+" must be an integer"))
		return nil
	}
	return &n
}

// count returns an integer, 0 if it is omitted.
func (a *arguments) count(name string) int64 {
	if n := a.integer(name); n != nil {
		return *n
	}
	return 0
}

// number returns an integer from a query, where numbers have no quotes.
func (a *arguments) number(name string) *int64 {
	var text string
	if value := a.values[name]; json.Unmarshal(value, &text) == nil && text != "" && strings.Trim(text, "-.0123456789") == "" && json.Valid([]byte(text)) {
		a.values[name] = json.RawMessage(text)
	}
	return a.integer(name)
}

// integerOf reads a JSON integer, a number with only zeros after its point, or a text with
// an optional minus and digits.
func integerOf(value json.RawMessage) (int64, bool) {
	text := string(value)
	if value[0] == '"' && json.Unmarshal(value, &text) != nil {
		return 0, false
	}
	digits := strings.TrimPrefix(text, "-")
	if whole, zeros, ok := strings.Cut(digits, "."); ok && value[0] != '"' && zeros != "" && strings.Trim(zeros, "0") == "" {
		digits = whole
		text = strings.TrimSuffix(text, "."+zeros)
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return wholeOf(value)
	}
	n, err := strconv.ParseInt(text, 10, 64) // the nearest number if out of range
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// wholeOf reads a whole JSON number with an exponent.
func wholeOf(value json.RawMessage) (int64, bool) {
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(value), 64) // ±Inf if out of range
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), f != math.Trunc(f):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// boolean returns true or false, false if it is omitted.
func (a *arguments) boolean(name string) (b bool) {
	if value := a.take(name); value != nil && json.Unmarshal(value, &b) != nil {
		a.fail(invalid(name, name+" must be true or false"))
	}
	return b
}

// texts returns a list of texts, nil if it is omitted.
func (a *arguments) texts(name string) (list []string) {
	value := a.take(name)
	if value == nil {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		a.fail(invalid(name, name+" must be a list of strings"))
		return nil
	}
	for _, item := range items {
		one := arguments{values: map[string]json.RawMessage{name: item}}
		text, there := one.text(name)
		if one.err != nil || !there {
			a.fail(invalid(name, name+" must be a list of strings"))
			return nil
		}
		list = append(list, text)
	}
	return list
}

// object returns a JSON object unchanged, nil if it is omitted. Null is an error.
func (a *arguments) object(name string) json.RawMessage {
	value, there := a.values[name]
	if !there {
		return nil
	}
	delete(a.values, name)
	if value[0] != '{' {
		a.fail(invalid(name, name+" must be an object"))
		return nil
	}
	if err := rules.CheckJSON(name, value); err != nil {
		a.fail(err)
		return nil
	}
	return value
}

// tags returns an object of texts, nil if it is omitted.
func (a *arguments) tags() map[string]string {
	value := a.object("tags")
	if value == nil {
		return nil
	}
	var texts map[string]*string
	if json.Unmarshal(value, &texts) != nil {
		a.fail(invalid("tags", "the values of tags must be strings"))
		return nil
	}
	tags := make(map[string]string, len(texts))
	for k, v := range texts {
		if v == nil {
			a.fail(invalid("tags", "the values of tags must be strings"))
			return nil
		}
		tags[k] = *v
	}
	return tags
}

// done returns the first error. An argument that was not taken is an error.
func (a *arguments) done() error {
	if a.err != nil || len(a.values) == 0 {
		return a.err
	}
	first := ""
	for name := range a.values {
		if first == "" || name < first {
			first = name
		}
	}
	first = truncate50(strings.ToValidUTF8(first, "?"))
	return invalid(first, "unknown field "+first)
}
