// Package command contains what all commands share: the process that they run in, how they open the
// store, print results as text or JSON, report errors, and check arguments and flags.
//
// The packages next to it contain the commands, one package for each heading of the help. Package
// cli joins them.
package command
