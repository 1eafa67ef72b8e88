package toolargs

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"cairn/internal/fault"
)

type everyKind struct {
	Text    string          `arg:"text"`
	Count   *int64          `arg:"count"`
	Small   *int            `arg:"count"`
	Flag    bool            `arg:"flag"`
	IDs     []int64         `arg:"ids"`
	Project Scope           `arg:"project"`
	Words   []string        `arg:"words"`
	Object  json.RawMessage `arg:"object"`
	Above   *string         `arg:"above,nullable"`
	None    bool            `arg:"above,null"`
}

// decoded decodes arguments in the style of a part.
func decoded[In any](style Style, raw string, scope Scope) (in In, ignored []string, err error) {
	params := ParamsOf(reflect.TypeFor[In]())
	for i := range params {
		params[i].Style = style
	}
	own, _, ignored, err := Decode(json.RawMessage(raw), params, reflect.TypeFor[In](), reflect.TypeFor[struct{}](), scope)
	if err == nil {
		in = *own.(*In)
	}
	return in, ignored, err
}

func TestProjectTellsOmittedNullAndNamedApart(t *testing.T) {
	t.Parallel()
	fallback := Scope{Name: "from-url"}
	for name, c := range map[string]struct {
		args string
		want Scope
	}{
		"omitted":     {`{}`, fallback},
		"no object":   {``, fallback},
		"null object": {`null`, fallback},
		"empty":       {`{"project":""}`, fallback},
		"null":        {`{"project":null}`, Scope{All: true}},
		"star":        {`{"project":"*"}`, Scope{All: true}},
		"named":       {`{"project":"billing"}`, Scope{Name: "billing"}},
		"other case":  {`{"Project":"billing"}`, fallback},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, _, err := decoded[everyKind](defaultStyle, c.args, fallback)
			if err != nil {
				t.Fatal(err)
			}
			if got := in.Project; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestIntegersMayBeWrittenInAnyWay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"3": 3, "-4": -4, "3.0": 3, "1e2": 100, "120e-1": 12, "-0": 0,
		"9223372036854775807": math.MaxInt64, "9223372036854775808": math.MaxInt64,
		"-1e30": math.MinInt64, "1e400": math.MaxInt64, "-1e999999999": math.MinInt64,
	} {
		in, _, err := decoded[everyKind](defaultStyle, `{"count": `+text+` ,"ids":[`+text+`]}`, Scope{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := in.Count; got == nil || *got != want {
			t.Errorf("%s: got %v, want %d", text, got, want)
		}
		if got := in.IDs; !reflect.DeepEqual(got, []int64{want}) {
			t.Errorf("list of %s: got %v", text, got)
		}
		if got := in.Small; got == nil || int64(*got) != max(math.MinInt, min(math.MaxInt, want)) {
			t.Errorf("%s as int: got %v", text, got)
		}
	}
}

func TestWrongTypesAreInvalidAndNamed(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`[]`:                       `arguments must be an object, not an array`,
		`"x"`:                      `arguments must be an object, not a string`,
		`{"text":7}`:               `argument "text" must be a string, not a number`,
		`{"text":["secret"]}`:      `argument "text" must be a string, not an array`,
		`{"text":{}}`:              `argument "text" must be a string, not an object`,
		`{"text":true}`:            `argument "text" must be a string, not a boolean`,
		`{"count":2.5}`:            `argument "count" must be an integer, not a fraction`,
		`{"count":1e-1}`:           `argument "count" must be an integer, not a fraction`,
		`{"count":"3"}`:            `argument "count" must be an integer, not a string`,
		`{"count":[1]}`:            `argument "count" must be an integer, not an array`,
		`{"count":false}`:          `argument "count" must be an integer, not a boolean`,
		`{"flag":1}`:               `argument "flag" must be true or false, not a number`,
		`{"flag":"true"}`:          `argument "flag" must be true or false, not a string`,
		`{"ids":5}`:                `argument "ids" must be an array of integers, not a number`,
		`{"ids":[1,"2"]}`:          `argument "ids" must be an array of integers; element 2 is a string`,
		`{"ids":[null]}`:           `argument "ids" must be an array of integers; element 1 is null`,
		`{"ids":[[1]]}`:            `argument "ids" must be an array of integers; element 1 is an array`,
		`{"words":"a"}`:            `argument "words" must be an array of strings, not a string`,
		`{"words":["a",1]}`:        `argument "words" must be an array of strings; element 2 is a number`,
		`{"words":[null]}`:         `argument "words" must be an array of strings; element 1 is null`,
		`{"object":[]}`:            `argument "object" must be an object, not an array`,
		`{"object":"{}"}`:          `argument "object" must be an object, not a string`,
		`{"above":7}`:              `argument "above" must be a string or null, not a number`,
		`{"text":"\ud800"}`:        `argument "text" must be valid Unicode`,
		`{"text":"\udc00\ud800"}`:  `argument "text" must be valid Unicode`,
		`{"text":"\ud800\\udc00"}`: `argument "text" must be valid Unicode`,
		"{\"text\":\"\xff\"}":      `argument "text" must be valid Unicode`,
		`{"words":["\ud83d"]}`:     `argument "words" must be valid Unicode`,
		`{"object":{"\uDFFF":1}}`:  `argument "object" must be valid Unicode`,
		`{"project":3}`:            `argument "project" must be a string or null, not a number`,
		`{"project":["billing"]}`:  `argument "project" must be a string or null, not an array`,
	} {
		_, _, err := decoded[everyKind](defaultStyle, args, Scope{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
		if fault.KindOf(err) != fault.Invalid || !fault.HasCode(err, CodeInvalidArgument) {
			t.Errorf("%s: not an invalid argument: %#v", args, err)
		}
		if field, _ := fault.As(err).Details["field"].(string); args[0] == '{' && !strings.HasPrefix(args, `{"`+field+`"`) {
			t.Errorf("%s: the field is %q", args, field)
		}
	}
}

func TestNullAndUnknownArgumentsCountAsOmitted(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		`{}`, `{"text":null,"count":null,"flag":null,"ids":null,"words":null,"object":null}`, `{"other":1,"COUNT":"x","":{}}`,
	} {
		in, _, err := decoded[everyKind](defaultStyle, args, Scope{})
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if !reflect.DeepEqual(in, everyKind{}) {
			t.Errorf("%s: something was set: %+v", args, in)
		}
	}
}

func TestRequiredArgumentsMustBePresent(t *testing.T) {
	t.Parallel()
	type required struct {
		Query string  `arg:"query,required"`
		IDs   []int64 `arg:"ids,required"`
	}
	for args, want := range map[string]string{
		``:                       `missing required argument "query"`,
		`{"query":null}`:         `missing required argument "query"`,
		`{"query":""}`:           `missing required argument "ids"`,
		`{"query":"","ids":[]}`:  ``,
		`{"ids":[],"query":"é"}`: ``,
	} {
		_, _, err := decoded[required](defaultStyle, args, Scope{})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: got %v, want %q", args, err, want)
		}
	}
}

func FuzzArgumentErrorsAreInvalidAndShowNoValue(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"text":"a","count":3.0,"flag":true,"ids":[1,2],"project":null}`, `{"count":1e400}`,
		`{"ids":[1,{"a":"zqxjk"}]}`, `{"text":"\ud800"}`, `{"words":["\ud83d\ude00",2],"object":{"zqxjk":"\u"},"above":null}`, `{"project":{"zqxjk":1}}`, `{"count":"zqxjk"}`, `[1`, "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, _, err := decoded[everyKind](defaultStyle, string(data), Scope{})
		if err == nil {
			if s := in.Project; s.All && s.Name != "" {
				t.Errorf("scope is both all and %q", s.Name)
			}
			return
		}
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("kind %v", fault.KindOf(err))
		}
		if strings.Contains(err.Error(), "zqxjk") || len(err.Error()) > 200 {
			t.Errorf("the message shows what was sent: %s", err)
		}
	})
}

func TestNullableTellsOmittedNullAndEmptyApart(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]struct {
		null bool
		text *string
	}{
		`{}`: {}, `{"above":null}`: {null: true}, `{"above":""}`: {text: new("")}, `{"above":"R1"}`: {text: new("R1")},
	} {
		in, _, err := decoded[everyKind](defaultStyle, sent, Scope{})
		if err != nil {
			t.Fatal(err)
		}
		if in.None != want.null || !reflect.DeepEqual(in.Above, want.text) {
			t.Errorf("%s: null %v, text %v", sent, in.None, in.Above)
		}
	}
}

func TestTextsAndObjectsArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()
	in, _, err := decoded[everyKind](defaultStyle, `{"words":["","\ud83d\ude00","\\ud800"],"object":{"n":1.50, "t":"\u00e9"}}`, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if got := in.Words; !reflect.DeepEqual(got, []string{"", "😀", `\ud800`}) {
		t.Errorf("texts: %q", got)
	}
	if got := string(in.Object); got != `{"n":1.50, "t":"\u00e9"}` {
		t.Errorf("object: %s", got)
	}
}

func TestUndeclaredArgumentsAreNamedInOrder(t *testing.T) {
	t.Parallel()
	_, ignored, err := decoded[everyKind](defaultStyle, `{"zeta":1,"text":"a","Text":2,"count":null,"alpha":{}}`, Scope{})
	if err != nil || !reflect.DeepEqual(ignored, []string{"Text", "alpha", "zeta"}) {
		t.Errorf("%q, %v", ignored, err)
	}
}
