// Package web renders the pages for the human overseer: projects, their mail, and a form to
// write to agents (contract mail §4 and §13). It renders results of the façade. The
// listener, internal/httpapi, checks access and all other properties of a request before it
// asks for a page.
//
// The pages work without scripts. Whatever agents wrote is escaped, or rendered by
// internal/markdown; who got blind copies is not shown (mail G8).
//
//	/                                    projects
//	/projects/{key}/mail                 the newest messages, and the agents; ?before=ID for older ones
//	/projects/{key}/mail/{id}            a message with its thread
//	/projects/{key}/mail/{id}/files/{n}  an attachment, to be saved
//	/projects/{key}/threads/{thread}     the messages of a thread
//	/projects/{key}/overseer             the form; by POST it is sent
//	/login, /logout, /style.css
//
// {key} is what mail takes as a project_key, path-escaped.
//
// # Why: pages
//
// web makes pages and httpapi decides who sees them, so there is one check of host,
// origin and token. A visit is no row: its cookie holds an end and its HMAC under the
// token. Forms are sent with the referrer policy same-origin, because under no-referrer
// a browser hides the Origin that is to be compared. Markdown is read by a room of ours:
// every library works at program start (goldmark 0.4 ms, with tables 1.0; the rest 0.2
// to 0.4), which each hook would pay. It writes escaped text into a fixed set of
// elements, so nothing is left to sanitise, and goldmark and a parser of HTML are
// oracles in its tests. html/template costs 0.02 ms and is worth it. Chromium is driven
// from a module of its own.
package web
