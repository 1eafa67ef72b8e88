package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/fault"
)

func inboxResource() Resource {
	return Resource{
		Address: "inbox/", Last: Param{Name: "agent", manner: mailed, Required: true},
		Query: []Param{
			{Name: "project", Required: true, manner: mailed}, {Name: "limit", Kind: Integer, manner: mailed},
			{Name: "since_ts", Aliases: []string{"since"}, manner: mailed}, {Name: "unread_only", Kind: Boolean, manner: mailed}, {Name: "secret", untold: true, manner: mailed},
		},
	}
}

func TestAddressesAreArguments(t *testing.T) {
	t.Parallel()
	r := inboxResource()
	if got := r.template(); got != "resource://inbox/{+agent}{?project,limit,since_ts,unread_only}" {
		t.Errorf("template %s", got)
	}
	for uri, want := range map[string]string{
		"resource://inbox/BlueLake":                                   `{"agent":"BlueLake"}`,
		"resource://inbox/Blue%20Lake?limit=5&project=%2Fa%2Fb":       `{"agent":"Blue Lake","limit":"5","project":"/a/b"}`,
		"resource://inbox/B?unread_only=YES&project=1":                `{"agent":"B","project":"1","unread_only":true}`,
		"resource://inbox/B?unread_only=f&project=&since=2026-01-01":  `{"agent":"B","since":"2026-01-01","unread_only":false}`,
		"resource://inbox/B?unread_only=maybe&project=t&project=last": `{"agent":"B","project":"t","unread_only":"maybe"}`,
		"resource://inbox//srv/ledger":                                `{"agent":"/srv/ledger"}`,
	} {
		if got, err := r.arguments(uri); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", uri, got, err, want)
		}
	}
	for _, uri := range []string{"resource://inbox/%zz", "resource://inbox/B?a=%zz", "resource://inbox/B?a;b"} {
		if got, err := r.arguments(uri); err == nil {
			t.Errorf("%s: %s", uri, got)
		}
	}
}

// FuzzAddress reads any address: it is arguments of the declared kinds, or an error.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"inbox/BlueLake?project=x&limit=5", "inbox/%2F?unread_only=y", "inbox/?since=1&since_ts=2", "inbox/é\xff?limit=1e9", "?", "inbox/B?limit=-9223372036854775809",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		r := inboxResource()
		raw, err := r.arguments(resourceScheme + address)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("%q: %s", address, raw)
		}
		args, err := decodeArgs(append(r.Query, r.Last), raw, Scope{})
		if err == nil && args.values["agent"] == nil {
			t.Errorf("%q: no agent in %v", address, args.values)
		}
	})
}

func TestLooseParametersTakeTextForNumbersAndBooleans(t *testing.T) {
	t.Parallel()
	params := []Param{
		{Name: "n", Kind: Integer, manner: mailed}, {Name: "b", Kind: Boolean, manner: mailed}, {Name: "ids", Kind: Integers, manner: mailed},
		{Name: "to", Kind: Names, manner: mailed, Required: true}, {Name: "key", Aliases: []string{"old", "older"}, manner: mailed}, {Name: "any", Kind: Anything, manner: mailed},
	}
	for raw, want := range map[string]string{
		`{"to":"A","n":"12","b":"false","ids":["1",2],"any":[{}]}`: `A|12|false true|[1 2]|`,
		`{"to":["A","B"],"n":"-3","b":true}`:                       `A,B|-3|true false|[]|`,
		`{"to":null,"old":"x","n":null,"b":null,"ids":null}`:       `|nil|false false|[]|x`,
		`{"to":[],"key":null,"older":"y"}`:                         `|nil|false false|[]|y`,
		`{"to":"A","key":"z","n":99999999999999999999}`:            `A|9223372036854775807|false false|[]|z`,
		`{"to":"A","n":"99999999999999999999"}`:                    `A|9223372036854775807|false false|[]|`,
	} {
		a, err := decodeArgs(params, json.RawMessage(raw), Scope{})
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		n := "nil"
		if v := a.Int64("n"); v != nil {
			n = fmt.Sprint(*v)
		}
		got := strings.Join([]string{
			strings.Join(a.Strings("to"), ","), n, fmt.Sprint(a.Bool("b"), a.IsFalse("b")), fmt.Sprint(a.Integers("ids")), a.String("key"),
		}, "|")
		if got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	for raw, want := range map[string]string{
		`{}`:                           "MISSING_FIELD to",
		`{"to":{}}`:                    "TYPE_ERROR to",
		`{"to":[1]}`:                   "TYPE_ERROR to",
		`{"to":"A","n":"12abc"}`:       "TYPE_ERROR n",
		`{"to":"A","n":"1.0"}`:         "TYPE_ERROR n",
		`{"to":"A","n":""}`:            "TYPE_ERROR n",
		`{"to":"A","n":true}`:          "TYPE_ERROR n",
		`{"to":"A","b":"True"}`:        "TYPE_ERROR b",
		`{"to":"A","b":1}`:             "TYPE_ERROR b",
		`{"to":"A","ids":"1"}`:         "TYPE_ERROR ids",
		`{"to":"A","ids":["x"]}`:       "TYPE_ERROR ids",
		`{"to":"\ud800"}`:              "INVALID_ARGUMENT to",
		`{"to":"A","key":["x"]}`:       "TYPE_ERROR key",
		`{"to":"A","older":{"x":"y"}}`: "TYPE_ERROR key",
	} {
		_, err := decodeArgs(params, json.RawMessage(raw), Scope{})
		if got := codeAndField(err); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func codeAndField(err error) string {
	f := fault.As(err)
	if f == nil || f.Details["recoverable"] != true {
		return "no error of mail"
	}
	return f.Code + " " + fmt.Sprint(f.Details["field"])
}
