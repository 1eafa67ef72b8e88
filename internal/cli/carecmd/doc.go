// Package carecmd contains the commands that forget, back up and repair: purge, sweep, backup,
// restore, encrypt, archive, reconcile and retry.
package carecmd
