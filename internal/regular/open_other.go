//go:build !unix

package regular

// OpenFlags keep an open from blocking. Here no file can block it.
const OpenFlags = 0
