// Package shell parses command lines as a shell would, without running them. It finds the
// programs that a line runs, whether the line commits or pushes, and which checks of a project it
// runs.
//
// It supports POSIX shells and PowerShell. It parses a malformed line as far as possible. It
// reads each byte once, and at most 64 KiB of a line.
package shell
