package strictjson

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestOneValueWithKnownFieldsIsRead(t *testing.T) {
	t.Parallel()
	type value struct{ A int }
	var v value
	if err := Decode([]byte(" {\"A\": 7}\n"), &v); err != nil || v.A != 7 {
		t.Errorf("%v, %v", v, err)
	}
	for _, text := range []string{`{} {}`, `{}x`, `{"A":1}]`} {
		if err := Decode([]byte(text), new(value)); !errors.Is(err, ErrMore) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var unknown UnknownField
	if err := Decode([]byte(`{"A":1,"B":{"A":2}}`), new(value)); !errors.As(err, &unknown) || unknown != `"B"` {
		t.Errorf("unknown field: %v", err)
	}
	var mistyped *json.UnmarshalTypeError
	if err := Decode([]byte(`{"A":"x"}`), new(value)); !errors.As(err, &mistyped) || mistyped.Field != "A" {
		t.Errorf("type: %v", err)
	}
	for _, text := range []string{``, `{`, `nope`} {
		if err := Decode([]byte(text), new(value)); err == nil {
			t.Errorf("%q is JSON", text)
		}
	}
}
