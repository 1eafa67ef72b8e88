// Package messages sends messages between agents and shows them: inboxes, receipts, threads,
// search and summaries.
//
// Whether an agent may write to another one depends on contacts and on the recipient's
// policy, so this package also manages contacts (mail §6). A recipient of another project is
// represented by a mirror in the sender's project. Attachments are read before the
// transaction begins, and only from files of the project.
package messages
