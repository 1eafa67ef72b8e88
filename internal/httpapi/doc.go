// Package httpapi is the HTTP listener. One address serves MCP at /mcp and /api, and the same
// tools as JSON under /v1. It also serves web pages at / and below /projects, /health and
// /metrics (contracts mail §5 and §13, records §3, memories §3).
//
// Every request passes the same checks, in this order: Host is loopback or listed (403); Origin,
// if present, is the page's own or listed (403); the bearer token is valid (401, except
// /health); the rate limit (429); the capacity (503). The last two send Retry-After.
//
// The JSON mirror serves every tool at POST /v1/projects/{key}/{toolset}/{tool}, with the
// arguments as a JSON object. Tools that only read also accept GET with query parameters. {key}
// is the project, path-escaped; * means the server's project. GET /v1/tools lists the routes.
// The response is the tool's text over MCP, byte for byte. Unknown arguments are ignored and
// listed in the header Cairn-Ignored, percent-encoded, separated by commas.
//
// Pages accept a login session instead of the token. /login checks the token and sets a cookie.
// The cookie expires after twelve hours, at /logout, or when the token changes. A logout applies
// to all servers of the data directory and after a restart. A request for a page without a
// session leads to /login. A form must come from a page of the same origin and contain the form
// token of the session. The cookie is valid only for pages.
//
// Memories have their own routes (memories §3), /v1/memories/… and others. They reject unknown
// and duplicate fields. They accept the owner's token and the tokens of `cairn token create`,
// each with a user and a level. Such a token is also valid for the tools of memories, /metrics
// and the list of routes, and for nothing else.
//
// Every response has a Request-Id and a traceparent, those of the request if they are valid.
// Writes of memories store the traceparent in the row, also over MCP and the mirror. The header
// Idempotency-Key is accepted by these routes and the mirror. MCP calls use the argument
// idempotency_key (memories §9) instead, and their result has the key in _meta.
//
// Errors are the product's envelope. The status follows from the kind of fault, or from its
// code. Rejections by the listener itself have codes in lower case: forbidden, not_found,
// method_not_allowed, request_timeout, body_too_large, unsupported_media_type, rate_limited,
// resource_busy, internal. Only a missing or wrong token outside the routes of memories gets
// {"detail":"Unauthorized"}.
package httpapi
