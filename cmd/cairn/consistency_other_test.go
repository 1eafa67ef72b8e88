//go:build !linux

package main

func (h *home) onSmallVolume() { h.t.Skip("a file system cannot be mounted here") }

func (w *town) fillVolume() (gone func()) { return func() {} }

// faultsOfArchiveVolumes returns nil, because these faults cannot be created on this system.
func faultsOfArchiveVolumes() map[string]archiveFault { return nil }
