//go:build testhooks

// Package testhooks is the control listener of test builds (memories §15): a driver
// tells a device or a hub through it what is to go wrong, and looks behind the scenes.
//
// A device is reset and reconfigured by ending its server and starting another one in
// the same process and at the same address: what a restart would do, but for the
// process. A hub stays; its data listener can be shut. What is to outlast a crash is in a
// file beside the store.
package testhooks
