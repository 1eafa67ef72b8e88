package replica

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
)

func client(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, err := NewClient(server.URL, "the token", 5*time.Second, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAnswersThatAreNoneOfAHubStoreNothingAndSayWhy(t *testing.T) {
	t.Parallel()
	one := PushRequest{DeviceID: "d", Items: []Item{{Stream: "s", Seq: 1}}}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   string
	}{
		"a page":           {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello")) }, CodeUnavailable},
		"too few results":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"results":[]}`)) }, CodeUnavailable},
		"a cut connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, CodeUnavailable},
		"a cut body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = w.Write([]byte("{"))
		}, CodeUnavailable},
		"an endless answer": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"results":[]}` + strings.Repeat(" ", maxAnswer) + "{"))
		}, CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client(t, c.answer).Push(t.Context(), one)
			if !fault.HasCode(err, c.code) {
				t.Errorf("%v, want code %s", err, c.code)
			}
		})
	}
}

func TestRefusalsCarryWhatTheHubSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		body, wait string
		want       Refused
	}{
		"an envelope": {401, `{"error":{"code":"unauthorized","message":"no","details":{}}}`, "", Refused{Status: 401, Reason: Error{Code: "unauthorized", Message: "no"}}},
		"a wait":      {429, `{"error":{"code":"rate_limited","message":"slow"}}`, "7", Refused{Status: 429, RetryAfter: 7 * time.Second, Reason: Error{Code: "rate_limited", Message: "slow"}}},
		"no envelope": {502, `<html>`, "x", Refused{Status: 502, Reason: Error{Code: CodeUnavailable, Message: "Bad Gateway"}}},
		"no route":    {404, `404 page not found`, "", Refused{Status: 404, Reason: Error{Code: CodeTooOld, Message: "the hub does not know this request"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.wait)
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}).Whoami(t.Context(), "")
			r, ok := errors.AsType[*Refused](err)
			if !ok || r.Status != c.want.Status || r.RetryAfter != c.want.RetryAfter || r.Reason.Code != c.want.Reason.Code || r.Reason.Message != c.want.Reason.Message {
				t.Errorf("%+v, want %+v", err, c.want)
			}
		})
	}
}

func TestTheTokenGoesToTheHubAlone(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("followed") }))
	defer other.Close()
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the token" {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.Whoami(t.Context(), ""); err == nil || strings.Contains(err.Error(), "the token") {
		t.Errorf("%v", err)
	}
	for address, fine := range map[string]bool{
		"http://127.0.0.1:1": true, "http://localhost:1/": true, "http://[::1]:1": true, "https://hub.example": true,
		"http://hub.example": false, "http://10.0.0.1": false, "ftp://x": false, "hub:1": false, "https://a@b": false, "https://a?b": false, "": false,
	} {
		if _, err := NewClient(address, "t", time.Second, false); (err == nil) != fine {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := NewClient("http://hub.example", "t", time.Second, true); err != nil {
		t.Error(err)
	}
}

func TestACallEndsWithItsTimeout(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(stop)
	c, err := NewClient(server.URL, "t", 20*time.Millisecond, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Whoami(context.Background(), ""); !fault.HasCode(err, CodeUnavailable) {
		t.Error(err)
	}
}

func TestRetryAfterIsReadInBothFormsAndBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-5": 0, "0": 0, "3": 3 * time.Second, "99999999999999999999": 0, "86400": maxRetryAfter,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
		now.Add(time.Hour).Format(http.TimeFormat): maxRetryAfter,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
