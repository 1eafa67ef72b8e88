// Package memories provides one handle for all memories of a store. The methods of Service are the
// operations of the contract (memories §3).
package memories
