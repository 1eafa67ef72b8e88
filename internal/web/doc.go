// Package web is the pages for the person who oversees agents: projects, their mail,
// and the form to write to agents (contract mail §4 and §13). It makes pages of what
// the façade answers. Who may see them, and what else a request must carry, is
// checked by the listener, internal/httpapi, before it asks for a page.
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
package web
