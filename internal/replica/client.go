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

// Codes of the errors of a Client, besides those in a hub's responses.
const (
	CodeUnavailable = "hub_unavailable" // no response, or one that is not a hub's
	CodeTooOld      = "hub_too_old"     // the hub does not know this request
	CodeUsage       = "usage"           // an invalid address
)

// maxAnswer is how many bytes of a response are read. The largest one has [MaxPullBytes] of
// documents; with the JSON around them it stays far below this.
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
// Nothing is sent yet. timeout bounds each call; a waiting pull may take longer by the time
// that it waits. Errors: Invalid with code usage for an address that is not a URL, has a
// user, a query or a fragment, or is plain HTTP to another machine although insecure is
// false.
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
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is sent to no other server
		},
	}
	c.token.Store(&token)
	return c, nil
}

// SetToken replaces the token for later calls, and reports whether it is a different one.
func (c *Client) SetToken(token string) (other bool) { return *c.token.Swap(&token) != token }

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// Refused is a response of the hub other than 200: the whole request failed. It is not known
// whether any of it was stored.
type Refused struct {
	Status     int
	RetryAfter time.Duration // 0 if the hub did not say
	Reason     Error
}

func (r *Refused) Error() string {
	return fmt.Sprintf("the hub answered %d %s: %s", r.Status, r.Reason.Code, r.Reason.Message)
}

// Push sends changes. A response without exactly one result for each item is an error.
// Errors: a [*Refused], that of ctx, or Unavailable with code hub_unavailable if there was
// no valid response. The hub may then have stored any of the changes. It is always safe to
// send them again.
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

// Pull asks for changes after the cursors. It is idempotent. Errors: those of Push.
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

// Heads reads the page of the user's streams after one, "" for the first page. Errors: those
// of Push.
func (c *Client) Heads(ctx context.Context, after string) (answer HeadsResponse, err error) {
	q := url.Values{"limit": {strconv.Itoa(MaxHeads)}}
	if after != "" {
		q.Set("after", after)
	}
	return answer, c.call(ctx, http.MethodGet, PathHeads+"?"+q.Encode(), nil, &answer, 0)
}

// Entries reads entries of a memory from the hub (memories §10.7). [EntriesResponse] has the
// parameters of the query. Errors: those of Push.
func (c *Client) Entries(ctx context.Context, query url.Values) (answer EntriesResponse, err error) {
	return answer, c.call(ctx, http.MethodGet, PathEntries+"?"+query.Encode(), nil, &answer, 0)
}

// Whoami asks for the owner of the token, and for the head that the hub has of a device, ""
// for no device. Errors: those of Push.
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
		return unavailable(fmt.Errorf("the server is not a hub: %w", err))
	}
	return nil
}

// unavailable returns the error of a call without a valid response. It omits the address,
// because the text is shown in the status and in logs.
func unavailable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fault.Wrap(err, fault.Unavailable, CodeUnavailable, "the hub cannot be reached: "+err.Error()).
		WithHint("new entries are kept and sent once the hub answers; `cairn replication status` shows them")
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

// retryAfter reads the header in both forms. An invalid value, or a time in the past, is 0;
// the longest wait is five minutes (memories §10.3).
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
