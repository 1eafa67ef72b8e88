package redact

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestValue(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for name, c := range map[string]struct{ in, want string }{
		"nothing":             {`{"a":[1,"b",{"c":null}],"d":true}`, ""},
		"text":                {`"password=hunter2"`, `"password=[REDACTED]"`},
		"named":               {`{"password":"a bc"}`, `{"password":"[REDACTED]"}`},
		"named, deep":         {`{"a":[{"b":{"api_key":"abcd1234"}}]}`, `{"a":[{"b":{"api_key":"[REDACTED]"}}]}`},
		"named, number":       {`{"pin":1,"password":1234,"token":12345678.5,"secret":12}`, `{"pin":1,"password":"[REDACTED]","token":"[REDACTED]","secret":12}`},
		"named, object":       {`{"secret":{"a":1},"token":["x"],"password":[]}`, `{"secret":"[REDACTED]","token":"[REDACTED]","password":[]}`},
		"named, no secret":    {`{"password":null,"token":true,"secret":"","api_key":"$KEY","pwd":"/home/me/x","max_tokens":40960000,"token":"short"}`, ""},
		"named, reference":    {`{"password":"${PW}","token":"<token>","secret":"********"}`, ""},
		"named, with shape":   {`{"note":"x"}`, ""},
		"pair":                {`{"name":"API_KEY","value":"abcd1234"}`, `{"name":"API_KEY","value":"[REDACTED]"}`},
		"pair, harmless":      {`{"name":"PATH","value":"abcd1234"}`, ""},
		"header":              {`{"headers":{"Authorization":"Bearer abcd1234","Cookie":"a=bcde","Accept":"text/html"}}`, `{"headers":{"Authorization":"Bearer [REDACTED]","Cookie":"a=[REDACTED]","Accept":"text/html"}}`},
		"vendor":              {`{"datadog_id":"0123456789abcdefghij0123456789abcdefghij"}`, `{"datadog_id":"[REDACTED]"}`},
		"kubernetes":          {`{"kind":"Secret","data":{"a":"YWJj"}}`, `{"kind":"Secret","data":"[REDACTED]"}`},
		"key is a secret":     {`{"password=hunter2":1,"password=hunter3":2,"password=[REDACTED]":3}`, `{"password=[REDACTED]":3,"password=[REDACTED] 2":1,"password=[REDACTED] 3":2}`},
		"private":             {`["a <private>b</private>"]`, `["a [PRIVATE]"]`},
		"underscore pass":     {`{"DB_PASS":"hunter2"}`, `{"DB_PASS":"[REDACTED]"}`},
		"numbered":            {`{"password2":"hunter2"}`, `{"password2":"[REDACTED]"}`},
		"already done":        {`{"password":"[REDACTED]","x":"[PRIVATE]"}`, ""},
		"key and value apart": {`{"token_count":"150000000","tokens":"12345678","secretName":"my-app-tls"}`, ""},
	} {
		var in, want any
		if err := json.Unmarshal([]byte(c.in), &in); err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			c.want = c.in
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		before, _ := json.Marshal(in)
		got, changed := f.Value(in)
		if !reflect.DeepEqual(got, want) || changed != (c.want != c.in) {
			out, _ := json.Marshal(got)
			t.Errorf("%s: got %s, changed %v, want %s", name, out, changed, c.want)
		}
		if after, _ := json.Marshal(in); string(after) != string(before) {
			t.Errorf("%s: the argument was changed", name)
		}
		if again, changed := f.Value(got); changed || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: not idempotent: %v", name, again)
		}
	}
}

func TestValueKeepsOtherTypes(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for _, v := range []any{nil, 1, 2.5, json.Number("3"), true, []byte("password=hunter2"), struct{}{}} {
		if got, changed := f.Value(v); changed || !reflect.DeepEqual(got, v) {
			t.Errorf("%v became %v", v, got)
		}
	}
	got, changed := f.Value(map[string]any{"password": json.Number("123456"), "secret": int64(99999), "token": 123456789})
	if want := map[string]any{"password": Mark, "secret": Mark, "token": Mark}; !changed || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestValueOfAnyDepthEnds(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for _, depth := range []int{1000, 100_000} {
		var v any = "password=hunter2"
		for i := range depth {
			if i%2 == 0 {
				v = []any{v}
			} else {
				v = map[string]any{"a": v}
			}
		}
		got, changed := f.Value(v)
		if !changed {
			t.Fatal("a secret is left")
		}
		levels := 0
		for {
			if a, ok := got.([]any); ok {
				got = a[0]
			} else if m, ok := got.(map[string]any); ok {
				got = m["a"]
			} else {
				break
			}
			levels++
		}
		if depth == 1000 && (levels != 1000 || got != "password="+Mark) || depth > 1000 && got != Mark {
			t.Errorf("depth %d: %d levels, then %v", depth, levels, got)
		}
	}
}
