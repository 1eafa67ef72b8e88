// Package web renders the pages for human users. They show activity of agents, search,
// records, reservations and mail, and have a form to write to agents (contract mail §4 and
// §13). It renders results of the façade. Before it requests a page, the listener,
// internal/httpapi, checks access and all other properties of the HTTP request.
//
// The pages work without scripts. Text from agents is escaped, or rendered by
// internal/markdown. Recipients of blind copies are not shown (mail G8). Pages that show more
// than mail are also available as JSON, with ?format=json.
//
//	/                                    Today; ?period=24h|7d|30d|visit, ?project=ID
//	/timeline                            events; ?project, ?type, ?file, ?branch, ?agent, ?day, ?before=SECONDS-ID for older ones
//	/sessions/{id}                       a session; ?from=N begins with a turn
//	/rows/{id}                           an event in full, with its prompt and its output
//	/search                              ?q, ?project, ?part, ?type, ?agent, ?branch, ?when
//	/records/{project}                   the tree; ?state, ?at or ?tick; ?do=new&parent=ID shows a form, which POST stores
//	/records/{project}/{id}              a record next to the tree; ?from&to compares versions; ?do=edit|state|answer shows a form, which POST stores
//	/files                               the files of the newest edits; ?period, ?project
//	/files/{project}                     a file that agents touched, ?path; the origin of each line, ?line for all details of one; ?from=N; ?view=history
//	/memories/{id}                       the entries of a memory; ?before=ID for older ones, ?at=MOMENT for its context at that time
//	/reservations                        reservations with their holders; ?project, ?at=MOMENT
//	/memories, /worth, /mail, /keys
//	/status                              Health; POST runs doctor
//	/projects/{key}/mail                 the newest messages, and the agents; ?before=ID for older ones
//	/projects/{key}/mail/{id}            a message with its thread
//	/projects/{key}/mail/{id}/files/{n}  an attachment, as a download
//	/projects/{key}/threads/{thread}     the messages of a thread
//	/projects/{key}/inbox/{agent}        the messages of an agent; ?unread=yes, ?at=MOMENT
//	/projects/{key}/reservations/{n}/release  a form that releases the reservation by POST
//	/projects/{key}/overseer             a form that sends a message by POST
//	/login, /logout, /style.css, /app.js
//	/events                              server-sent events: data has changed
//
// A live page marks its parts with data-part. After a change, its script fetches the same
// page again and replaces the parts that differ.
//
// {key} is the project_key of the mail tools, path-escaped.
//
// # Why: pages
//
// web renders pages and httpapi decides who may see them, so host, origin and token are
// checked in one place. A login session is not stored. Its cookie contains its expiry time
// and an HMAC of that time under the token. Forms are sent with the referrer policy
// same-origin. Under no-referrer a browser hides the Origin that the server compares.
// goldmark renders Markdown, and its tags are compared with a short list. In tests an HTML
// parser checks the result. Bars are SVG with positions in percent, because the content
// policy forbids inline styles. The tests that drive Chromium are a separate module.
package web
