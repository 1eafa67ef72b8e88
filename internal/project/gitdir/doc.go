// Package gitdir finds the Git repository around a folder and reads its files. It starts no
// process, writes nothing and reads a bounded amount. Broken files count as missing.
package gitdir
