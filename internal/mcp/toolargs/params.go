package toolargs

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// target is the field of a tool's struct in which an argument is stored.
type target struct {
	Path []int // the number of the struct, then an index as in [reflect.Value.FieldByIndex]
	Form form
}

// form is the property of an argument that a field contains.
type form uint8

const (
	asValue   form = iota
	inverted       // the negated boolean
	IfNull         // whether the argument is null
	IfOmitted      // whether the argument is omitted
)

// ParamsOf returns the parameters that struct types declare with the tags of their
// fields, in order. It panics for an invalid tag, which is a bug.
//
//	arg:"limit,default=20,min=1,max=100" about:"Maximum number of rows." lean:"How many."
//
// arg begins with the name. Options are required, default, min, max, enum=A|B,
// or=ALIAS|ALIAS, unlisted, and
//
//	nullable   null means something else than omitted
//	names      a list of texts that may also be a single text, or null for an empty list
//	nonempty   refuses ""
//	raised     a number below min counts as min
//	not        the field is true if the argument is false, which is true by default
//	last       the last part of a resource's address
//	null, omitted   the field, after the argument's own, is true if the argument is null or omitted
//
// about is the description. lean lists the parameter in the lean tools, with its text as
// the description. A pointer is nil if the argument is omitted. All fields of the same name
// get the argument; the first one declares it. A field that is a struct declares its own
// parameters; a tag arg on it selects some of them.
func ParamsOf(types ...reflect.Type) (params []Param) {
	for i, of := range types {
		params = appendParams(params, of, []int{i}, nil)
	}
	return params
}

func appendParams(params []Param, of reflect.Type, path []int, chosen []string) []Param {
	for i := range of.NumField() {
		field := of.Field(i)
		at := slices.Concat(path, []int{i})
		tag, tagged := field.Tag.Lookup("arg")
		switch {
		case field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[Scope]():
			var some []string
			if tagged {
				some = strings.Split(tag, ",")
			}
			params = appendParams(params, field.Type, at, some)
			for _, name := range some {
				if !slices.ContainsFunc(params, func(p Param) bool { return p.Name == name }) {
					panic(fmt.Sprintf("mcp: %v has no argument %q", field.Type, name))
				}
			}
			continue
		case !tagged:
			continue
		}
		p, form := paramOf(field, tag)
		if chosen != nil && !slices.Contains(chosen, p.Name) {
			continue
		}
		first := slices.IndexFunc(params, func(q Param) bool { return q.Name == p.Name })
		if first < 0 {
			first, params = len(params), append(params, p)
		}
		params[first].Targets = append(params[first].Targets, target{at, form})
	}
	return params
}

// paramOf returns the parameter of one field.
func paramOf(field reflect.StructField, tag string) (p Param, as form) {
	name, options, _ := strings.Cut(tag, ",")
	p = Param{Name: name, Kind: kindOf(field.Type), Description: field.Tag.Get("about")}
	p.Brief, p.Lean = field.Tag.Lookup("lean")
	for option := range strings.SplitSeq(options, ",") {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "":
		case "required":
			p.Required = true
		case "default":
			if p.Default = value; p.Kind == Integer {
				p.Default = wholeNumber(field, value)
			}
		case "min":
			p.Minimum = new(wholeNumber(field, value))
		case "max":
			p.Maximum = new(wholeNumber(field, value))
		case "enum":
			p.Enum = strings.Split(value, "|")
		case "or":
			p.Aliases = strings.Split(value, "|")
		case "unlisted":
			p.Unlisted = true
		case "nullable":
			p.Kind = Nullable
		case "names":
			p.Kind = Names
		case "nonempty":
			p.nonempty = true
		case "raised":
			p.raised = true
		case "not":
			as = inverted
		case "null":
			as = IfNull
		case "omitted":
			as = IfOmitted
		case "last":
			p.Last, p.Required = true, true
		default:
			panic(fmt.Sprintf("mcp: the tag of %s has the unknown option %q", field.Name, option))
		}
	}
	if p.Kind == Boolean && !p.Required {
		p.Default = as == inverted
	}
	return p, as
}

func wholeNumber(field reflect.StructField, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("mcp: the tag of %s: %v", field.Name, err))
	}
	return n
}

// kindOf returns the kind of a field's argument.
func kindOf(t reflect.Type) Kind {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case t == reflect.TypeFor[Scope]():
		return Project
	case t == reflect.TypeFor[json.RawMessage](), k == reflect.Map:
		return Object
	case k == reflect.String, reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return String
	case k == reflect.Int, k == reflect.Int64:
		return Integer
	case k == reflect.Bool:
		return Boolean
	case k == reflect.Slice && t.Elem().Kind() == reflect.String:
		return Strings
	case k == reflect.Slice && t.Elem().Kind() == reflect.Int64:
		return Integers
	case k == reflect.Interface:
		return Anything
	}
	panic(fmt.Sprintf("mcp: no argument is a %v", t))
}

// store writes an argument to its fields in the structs that in points to.
func (p Param) store(in [2]reflect.Value, v any, given presence, scope Scope) error {
	if v == nil && p.Kind == Project {
		v = scope
	}
	for _, t := range p.Targets {
		field := in[t.Path[0]].Elem().FieldByIndex(t.Path[1:])
		switch {
		case t.Form == IfNull:
			field.SetBool(given == null)
		case t.Form == IfOmitted:
			field.SetBool(given == omitted)
		case v != nil:
			if err := p.assign(field, v, t.Form == inverted); err != nil {
				return err
			}
		}
	}
	return nil
}

// assign stores a value of [Param.read] in a field.
func (p Param) assign(field reflect.Value, v any, not bool) error {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch v := v.(type) {
	case string:
		if own, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
			return own.UnmarshalText([]byte(v))
		}
		field.SetString(v)
	case bool:
		field.SetBool(v != not)
	case int64:
		if p.raised {
			v = max(v, int64(*p.Minimum))
		}
		if field.Kind() == reflect.Int {
			v = max(math.MinInt, min(math.MaxInt, v))
		}
		field.SetInt(v)
	case []string: // also of a named type
		list := reflect.MakeSlice(field.Type(), len(v), len(v))
		for i, text := range v {
			list.Index(i).SetString(text)
		}
		field.Set(list)
	case json.RawMessage:
		if field.Kind() != reflect.Map {
			field.SetBytes(v)
		} else if json.Unmarshal(v, field.Addr().Interface()) != nil {
			return MemoryError(p.Name, p.Name+" must be an object of strings")
		}
	default:
		field.Set(reflect.ValueOf(v))
	}
	return nil
}

// WithTexts sets the description of parameters without one to the part's text for their
// name.
func WithTexts(params []Param, texts map[string]string) {
	for i := range params {
		if params[i].Description == "" {
			params[i].Description = texts[params[i].Name]
		}
	}
}
