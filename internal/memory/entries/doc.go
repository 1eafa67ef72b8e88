// Package entries contains the calls about entries and the context document of a memory: add,
// change, list and read them, also those that a hub has not confirmed, those that were purged here
// and are read from the hub, and those of the past.
package entries
