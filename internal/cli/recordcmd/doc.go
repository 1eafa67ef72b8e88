// Package recordcmd contains the commands for decisions: records and session.
package recordcmd
