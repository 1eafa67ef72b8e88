//go:build testhooks

// Package testhooks is the control listener of test builds (memories §15). A test driver
// uses it to inject faults into a device or a hub, and to read their internal state.
//
// To reset or reconfigure a device, its server ends and another one starts in the same
// process at the same address. A hub keeps running; its data listener can be closed. State
// that must survive a crash is in a file next to the store.
package testhooks
