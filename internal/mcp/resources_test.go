package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/mcp/toolargs"
)

type inboxAddress struct {
	Project    string `arg:"project,required"`
	Limit      *int   `arg:"limit"`
	Since      string `arg:"since_ts,or=since"`
	UnreadOnly bool   `arg:"unread_only"`
	Secret     string `arg:"secret,unlisted"`
	Agent      string `arg:"agent,last"`
}

func inboxResource() Resource {
	return Resource{Address: "inbox/", params: toolargs.ParamsOf(reflect.TypeFor[inboxAddress]())}
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

// FuzzAddress parses any address. The result is arguments of the declared kinds, or an error.
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
		path, _, _ := strings.Cut(address, "?")
		if in, err := decodedQuery[inboxAddress](string(raw)); err == nil && (in.Agent == "") != (strings.TrimPrefix(path, r.Address) == "") {
			t.Errorf("%q: the agent is %q", address, in.Agent)
		}
	})
}

func TestLooseParametersTakeTextForNumbersAndBooleans(t *testing.T) {
	t.Parallel()
	type loose struct {
		N   *int64   `arg:"n"`
		B   bool     `arg:"b"`
		No  bool     `arg:"b,not"`
		IDs []int64  `arg:"ids"`
		To  []string `arg:"to,required,names"`
		Key string   `arg:"key,or=old|older"`
		Any any      `arg:"any"`
	}
	for raw, want := range map[string]string{
		`{"to":"A","n":"12","b":"false","ids":["1",2],"any":[{}]}`: `A|12|false true|[1 2]|`,
		`{"to":["A","B"],"n":"-3","b":true}`:                       `A,B|-3|true false|[]|`,
		`{"to":null,"old":"x","n":null,"b":null,"ids":null}`:       `|nil|false false|[]|x`,
		`{"to":[],"key":null,"older":"y"}`:                         `|nil|false false|[]|y`,
		`{"to":"A","key":"z","n":99999999999999999999}`:            `A|9223372036854775807|false false|[]|z`,
		`{"to":"A","n":"99999999999999999999"}`:                    `A|9223372036854775807|false false|[]|`,
	} {
		a, err := decodedQuery[loose](raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		n := "nil"
		if v := a.N; v != nil {
			n = fmt.Sprint(*v)
		}
		got := strings.Join([]string{
			strings.Join(a.To, ","), n, fmt.Sprint(a.B, a.No), fmt.Sprint(a.IDs), a.Key,
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
		_, err := decodedQuery[loose](raw)
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

// decodedQuery decodes the arguments of a resource's address.
func decodedQuery[In any](raw string) (in In, err error) {
	params := toolargs.ParamsOf(reflect.TypeFor[In]())
	for i := range params {
		params[i].Style = toolargs.MailStyle
	}
	own, _, _, err := toolargs.Decode(json.RawMessage(raw), params, reflect.TypeFor[In](), reflect.TypeFor[struct{}](), toolargs.Scope{})
	if err == nil {
		in = *own.(*In)
	}
	return in, err
}
