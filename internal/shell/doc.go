// Package shell reads command lines as a shell would, without running them: which programs a
// line runs, whether it commits or pushes, and which checks of a project it runs.
//
// It reads POSIX shells and PowerShell. A broken line is read as far as it makes sense. Each
// byte is read once, and at most 64 KiB of a line.
package shell
