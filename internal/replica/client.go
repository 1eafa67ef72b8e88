package replica

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"cairn/internal/fault"
)

// Codes of the errors that a Client makes besides those that a hub answers with.
const (
	CodeUnavailable = "hub_unavailable" // no answer, or none that a hub would give
	CodeTooOld      = "hub_too_old"     // the hub does not know this request
	CodeUsage       = "usage"           // an address that is none
)

// maxAnswer is how many bytes of an answer are read; the documents of the largest
// are [MaxPullBytes], JSON around them included it stays far below this.
const maxAnswer = 32 << 20

// Client calls one hub with one token. It is safe for concurrent use and keeps
// connections open; Close ends the idle ones.
type Client struct {
	base    string
	token   atomic.Pointer[string]
	timeout time.Duration
	http    *http.Client
}

// NewClient returns a client of the hub at a base URL such as https://hub.example:8766.
// Nothing is sent yet. timeout bounds each call, waiting pulls get what they wait in
// addition. An address that is none, has a user, a query or a fragment, or is plain
// HTTP to another machine although insecure is false, is Invalid with code usage.
func NewClient(base, token string, timeout time.Duration, insecure bool) (*Client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fault.Newf(fault.Invalid, CodeUsage, "%.200q is no address of a hub", base).
			WithHint("give a URL such as https://hub.example:8766")
	case u.Scheme == "http" && !insecure && !isLoopback(u.Hostname()):
		return nil, fault.Newf(fault.Invalid, CodeUsage, "%.200s would send the token and all text in the clear", base).
			WithHint("use https, or add --insecure-http if the network is yours")
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   requestsAtOnce + 1,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: timeout + MaxWaitMillis*time.Millisecond,
	}
	c := &Client{
		base: strings.TrimSuffix(base, "/"), timeout: timeout,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token goes nowhere else
		},
	}
	c.token.Store(&token)
	return c, nil
}

// SetToken replaces the token, for calls from now on, and reports whether it is another.
func (c *Client) SetToken(token string) (other bool) { return *c.token.Swap(&token) != token }

// Close ends the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// Refused is an answer of the hub other than 200: the whole request failed and
// nothing of it is known to be stored.
type Refused struct {
	Status     int
	RetryAfter time.Duration // 0 if the hub did not say
	Reason     Error
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the hub answered %d %s: %s", r.Status, r.Reason.Code, r.Reason.Message)
}

// Push sends changes. There are as many results as items, else the answer counts as
// none. Errors are a [*Refused], ctx's, or Unavailable with code hub_unavailable if
// there was no answer, in which case the hub may have taken anything of it: sending
// the same again is always safe.
func (c *Client) Push(ctx context.Context, items PushRequest) (answer PushResponse, err error) {
	path := PathPush
	if items.Head.Seq > 0 {
		path += "?" + url.Values{"device_seq": {strconv.FormatInt(items.Head.Seq, 10)}, "device_hash": {items.Head.Hash}}.Encode()
	}
	if err = c.call(ctx, http.MethodPost, path, items, &answer, 0); err == nil && len(answer.Results) != len(items.Items) {
		err = fault.Newf(fault.Unavailable, CodeUnavailable, "the hub answered %d items of %d", len(answer.Results), len(items.Items))
	}
	return answer, err
}

// Pull asks for what is newer than the cursors. Errors are those of Push; repeating
// is safe.
func (c *Client) Pull(ctx context.Context, ask PullRequest) (answer PullResponse, err error) {
	path := PathPull
	if ask.Catalogue > 0 {
		path += "?catalogue=" + strconv.FormatInt(ask.Catalogue, 10)
	}
	if ask.Cursors == nil {
		ask.Cursors = []Cursor{}
	}
	return answer, c.call(ctx, http.MethodPost, path, ask, &answer, time.Duration(ask.WaitMillis)*time.Millisecond)
}

// Heads reads a page of the user's streams, "" for the first. Errors as for Pull.
func (c *Client) Heads(ctx context.Context, after string) (answer HeadsResponse, err error) {
	q := url.Values{"limit": {strconv.Itoa(MaxHeads)}}
	if after != "" {
		q.Set("after", after)
	}
	return answer, c.call(ctx, http.MethodGet, PathHeads+"?"+q.Encode(), nil, &answer, 0)
}

// Entries reads entries of a memory as the hub has them (memories §10.7). The query
// is what [EntriesResponse] says. Errors as for Pull.
func (c *Client) Entries(ctx context.Context, query url.Values) (answer EntriesResponse, err error) {
	return answer, c.call(ctx, http.MethodGet, PathEntries+"?"+query.Encode(), nil, &answer, 0)
}

// Whoami asks whose the token is, and what the hub has of a device, "" for none. Errors
// as for Pull.
func (c *Client) Whoami(ctx context.Context, device string) (who Whoami, err error) {
	path := PathWhoami
	if device != "" {
		path += "?" + url.Values{"device": {device}}.Encode()
	}
	return who, c.call(ctx, http.MethodGet, path, nil, &who, 0)
}

func (c *Client) call(ctx context.Context, method, path string, body, answer any, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+wait)
	defer cancel()
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+*c.token.Load())
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	w, err := c.http.Do(r)
	if err != nil {
		return unavailable(err)
	}
	defer w.Body.Close()
	data, err := io.ReadAll(io.LimitReader(w.Body, maxAnswer))
	if err != nil {
		return unavailable(err)
	}
	if w.StatusCode != http.StatusOK {
		return refused(w, data)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return unavailable(fmt.Errorf("what answered is no hub: %w", err))
	}
	return nil
}

// unavailable is the error of a call without an answer. The address stays out of
// it: it is known, and the text goes into status and logs.
func unavailable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fault.Wrap(err, fault.Unavailable, CodeUnavailable, "the hub cannot be reached: "+err.Error()).
		WithHint("what was written is kept and sent once the hub answers; cairn replication status shows it")
}

func refused(w *http.Response, data []byte) error {
	var envelope struct {
		Error Error `json:"error"`
	}
	out := &Refused{Status: w.StatusCode, RetryAfter: retryAfter(w.Header.Get("Retry-After"), time.Now())}
	if json.Unmarshal(data, &envelope) == nil {
		out.Reason = envelope.Error
	}
	switch {
	case out.Reason.Code != "":
	case w.StatusCode == http.StatusNotFound, w.StatusCode == http.StatusMethodNotAllowed:
		out.Reason = Error{Code: CodeTooOld, Message: "the hub does not know this request"}
	default:
		out.Reason = Error{Code: CodeUnavailable, Message: http.StatusText(w.StatusCode)}
	}
	return out
}

// retryAfter reads the header in both its forms; what is none, or in the past, is 0,
// and nobody is made to wait longer than five minutes (memories §10.3).
func retryAfter(text string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return max(0, min(wait, maxRetryAfter))
}

const maxRetryAfter = 5 * time.Minute
