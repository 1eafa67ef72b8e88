// Package workspace is where a process of cairn works: its paths and settings, the store
// that it opens when it is first needed, and the parts over that store. The hook needs no
// more; package cairn adds memories, servers, copies and checks.
package workspace
