// Package httpapi is the HTTP listener. One address serves MCP at /mcp and /api, the same
// tools as JSON under /v1, web pages at / and below /projects, /health and /metrics
// (contracts mail §5 and §13, records §3, memories §3).
//
// Every request passes the same checks, in this order: its Host is loopback or
// listed (403), a present Origin is the page's own or listed (403), the bearer
// token fits (401, /health aside), the rate (429), and room to work in (503, both
// with Retry-After).
//
// The mirror is the tool table: POST /v1/projects/{key}/{toolset}/{tool} with the
// arguments as a JSON object, and for tools that only read also GET with query
// parameters. {key} names the project, path-escaped; * leaves it to the server.
// GET /v1/tools lists the routes. The answer is what the tool returns over MCP as
// text, byte for byte. Arguments that the tool does not have are ignored and named
// in the header Cairn-Ignored, percent-encoded, separated by commas.
//
// Pages accept a login session instead of the token. /login checks the token and sets a
// cookie. The cookie expires after twelve hours, at /logout, or when the token changes. A
// logout holds for all servers of the data directory and after a restart. What the pages are asked
// for without it leads to /login. A form must come from a page of the same origin and
// carry the visit's form token. The cookie opens nothing but pages.
//
// Memories have routes of their own (memories §3), /v1/memories/… and others. They read
// strictly: a field that is not known, or given twice, is refused. Besides the owner's
// token they take those of `cairn token create`, each with a user and a level; such a
// token opens nothing else but the tools of memories, /metrics and the list of routes.
// Every answer has a Request-Id and a traceparent, the request's if they were sound.
// What writes memories keeps the traceparent on the row, over MCP and the mirror too. An
// Idempotency-Key counts there and in the mirror. A message of MCP has its own, the
// argument idempotency_key (memories §9), and its result names the key in _meta.
//
// Errors are the product's envelope; a status follows from the kind of fault, some
// from its code. What the listener itself refuses has codes in lower case:
// forbidden, not_found, method_not_allowed, request_timeout, body_too_large,
// unsupported_media_type, rate_limited, resource_busy, internal. A missing or
// wrong token alone is answered with {"detail":"Unauthorized"}, where it is not about
// memories.
package httpapi
