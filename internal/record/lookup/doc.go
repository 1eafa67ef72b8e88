// Package lookup finds and shows records: the overview of a project, lists, single records,
// search, versions, activity, and the records that a session touched.
//
// It writes nothing. Every call can also answer for a past moment (as-of): then it reads a
// copy of the project, replayed up to that moment.
package lookup
