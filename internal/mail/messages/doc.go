// Package messages sends messages between agents and shows them: inboxes, receipts, threads,
// search and summaries.
//
// Whether an agent may write to another one depends on contacts and on the recipient's
// policy, so this package also manages contacts (mail §6). In a recipient's project, a
// sender of another project is represented by a mirror. Attachments are read before the
// transaction begins, and only from files of the project unless the configuration permits
// others.
package messages
