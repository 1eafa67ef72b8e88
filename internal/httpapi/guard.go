package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/memory"
)

// guard distinguishes requests of programs on this machine from requests that a third-party
// page causes in a browser.
type guard struct {
	hosts   []string // lower case, each with or without a port
	origins []string // lower case
}

func newGuard(c Config) (g guard, err error) {
	for _, host := range c.AllowHosts {
		name := strings.ToLower(host)
		if u, err := url.Parse("http://" + name); err != nil || u.Host != name || u.Hostname() == "" {
			return g, fault.Newf(fault.Invalid, "usage", "%.80q is not a host", host).WithHint("give a name or address, with or without a port")
		}
		g.hosts = append(g.hosts, name)
	}
	for _, origin := range c.AllowOrigins {
		name := strings.ToLower(strings.TrimSuffix(origin, "/"))
		if u, err := url.Parse(name); err != nil || u.Hostname() == "" || u.Scheme+"://"+u.Host != name || strings.Contains(name, "*") {
			return g, fault.Newf(fault.Invalid, "usage", "%.80q is not an origin", origin).WithHint("give a complete one, such as https://desk.example")
		}
		g.origins = append(g.origins, name)
	}
	return g, nil
}

// admits checks Host and Origin. It responds to rejected requests and to preflights, and
// adds the headers for listed origins.
func (g guard) admits(w http.ResponseWriter, r *http.Request) bool {
	if !g.hostOK(r.Host) {
		refuse(w, refusal{
			status: http.StatusForbidden, code: "forbidden", message: "this host name is not served",
			hint: "use a loopback address, or start the server with --allow-host",
		})
		return false
	}
	sent := r.Header.Values("Origin")
	if len(sent) == 0 {
		return true
	}
	origin := strings.ToLower(sent[0])
	listed := slices.Contains(g.origins, origin)
	if len(sent) > 1 || !listed && origin != "http://"+strings.ToLower(r.Host) {
		refuse(w, refusal{
			status: http.StatusForbidden, code: "forbidden", message: "pages of this origin are not allowed",
			hint: "to allow them, start the server with --allow-origin",
		})
		return false
	}
	if !listed {
		return true
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", sent[0])
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Cairn-Ignored, Idempotency-Key, Idempotency-Replayed, Mcp-Protocol-Version, Mcp-Session-Id, "+
		"Request-Id, Retry-After, Session-Id, Synced, Traceparent, Updated-At")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return true
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers",
		"Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-Id, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, "+
			"Request-Id, Traceparent")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return false
}

// hostOK reports whether a Host header names this machine or a listed host.
func (g guard) hostOK(host string) bool {
	host = strings.ToLower(host)
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return isLoopback(name) || slices.Contains(g.hosts, host) || slices.Contains(g.hosts, name) || slices.Contains(g.hosts, "["+name+"]")
}

// authorized returns the sender of a request. It responds to a request without a valid
// token.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request) (who mcp.Bearer, ok bool) {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given = strings.TrimSpace(given)
	if strings.EqualFold(scheme, "Bearer") {
		if s.isToken(r.Context(), given) {
			return mcp.Bearer{}, true
		}
		if who, ok := s.bearer(r.Context(), given); ok {
			return who, true
		}
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="cairn"`)
	if isMemoryPath(r.URL.EscapedPath()) {
		refuse(w, refusal{
			status: http.StatusUnauthorized, code: "unauthorized", message: "the token is missing, unknown, expired or revoked",
			hint: "send Authorization: Bearer TOKEN; `cairn http-token` prints the owner's, `cairn token create` creates others",
		})
		return who, false
	}
	writeJSON(w, http.StatusUnauthorized, map[string]string{"detail": "Unauthorized"})
	return who, false
}

// bearer returns the bearer of a token other than the owner's.
func (s *Server) bearer(ctx context.Context, given string) (who mcp.Bearer, ok bool) {
	if s.config.Bearer == nil || given == "" {
		return who, false
	}
	who, ok, err := s.config.Bearer(given)
	if err != nil {
		s.log.ErrorContext(ctx, "a token cannot be read", "error", err)
	}
	return who, ok
}

// bearerKey is the context key of a request's bearer.
type bearerKey struct{}

// bearerOf returns the bearer of an accepted request.
func bearerOf(r *http.Request) mcp.Bearer {
	who, ok := r.Context().Value(bearerKey{}).(mcp.Bearer)
	if !ok {
		return mcp.Bearer{Level: memory.Read}
	}
	return who
}

// isToken compares a text with the token in constant time.
func (s *Server) isToken(ctx context.Context, given string) bool {
	want := s.token(ctx)
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	return want != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// token returns the valid token, "" if there is none.
func (s *Server) token(ctx context.Context) string {
	token, err := s.config.Token()
	if err != nil {
		s.log.ErrorContext(ctx, "the token cannot be read", "error", err)
		return ""
	}
	return token
}
