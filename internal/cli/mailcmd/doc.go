// Package mailcmd contains the commands for several agents at work: agents, mail, contacts,
// reservations of files, and the guard of a repository.
package mailcmd
