// Package web renders the pages for people: what agents did and do, search, records, who
// holds which files, mail, and a form to write to agents (contract mail §4 and §13). It
// renders results of the façade. The listener, internal/httpapi, checks access and all other
// properties of a request before it asks for a page.
//
// The pages work without scripts. Whatever agents wrote is escaped, or rendered by
// internal/markdown; who got blind copies is not shown (mail G8). Pages that show more than
// mail are there as JSON, too, with ?format=json.
//
//	/                                    Today; ?period=24h|7d|30d|visit, ?project=ID
//	/timeline                            events; ?project, ?type, ?file, ?branch, ?agent, ?day, ?before=SECONDS-ID for older ones
//	/sessions/{id}                       a session; ?from=N begins with a turn
//	/rows/{id}                           an event, whole, with its prompt and what it printed
//	/search                              ?q, ?project, ?part, ?type, ?agent, ?branch, ?when
//	/records/{project}                   the tree; ?state, ?at or ?tick, ?do=new&parent=ID for a form; by POST it is stored
//	/records/{project}/{id}              a record beside it; ?from&to compares versions, ?do=edit|state|answer shows a form; by POST it is stored
//	/files                               the files of the newest edits; ?period, ?project
//	/files/{project}                     a file that agents touched, ?path; why each line is so, ?line all behind one; ?from=N; ?view=history
//	/memories/{id}                       the entries of a memory; ?before=ID for older ones, ?at=MOMENT for its context then
//	/reservations                        who holds what; ?project, ?at=MOMENT
//	/memories, /worth, /mail, /keys
//	/status                              Health; by POST doctor is run
//	/projects/{key}/mail                 the newest messages, and the agents; ?before=ID for older ones
//	/projects/{key}/mail/{id}            a message with its thread
//	/projects/{key}/mail/{id}/files/{n}  an attachment, to be saved
//	/projects/{key}/threads/{thread}     the messages of a thread
//	/projects/{key}/inbox/{agent}        what an agent has got; ?unread=yes, ?at=MOMENT
//	/projects/{key}/reservations/{n}/release  the form that ends a reservation; by POST it is ended
//	/projects/{key}/overseer             the form; by POST it is sent
//	/login, /logout, /style.css, /app.js
//	/events                              server-sent events: something has changed
//
// A page that is live marks its parts with data-part. Its script asks for the same page again
// when something has changed, and replaces the parts that differ.
//
// {key} is what mail takes as a project_key, path-escaped.
//
// # Why: pages
//
// web makes pages and httpapi decides who sees them, so there is one check of host,
// origin and token. A visit is no row: its cookie holds an end and its HMAC under the
// token. Forms are sent with the referrer policy same-origin, because under no-referrer
// a browser hides the Origin that is to be compared. Markdown goes through goldmark, whose
// tags are compared with a short list; a parser of HTML checks the result in tests. Bars are SVG with positions in
// percent, because the content policy forbids inline styles. Chromium is driven
// from a module of its own.
package web
