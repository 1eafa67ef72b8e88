// Package consistency compares the rows of records with the change log, and repairs them
// after a salvage.
//
// The log is authoritative: rows that are lost or older than it come from the log. Rows that
// the log has lost are logged again. Ids and ticks are never reused.
package consistency
