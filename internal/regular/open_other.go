//go:build !unix

package regular

// OpenFlags prevent an open from blocking. On this system no file can block it.
const OpenFlags = 0
