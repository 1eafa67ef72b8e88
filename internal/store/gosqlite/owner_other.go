//go:build !unix

package gosqlite

// giveToOwner does nothing: on this system files inherit the permissions of their folder.
func giveToOwner(string) error { return nil }
