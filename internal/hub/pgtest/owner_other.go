//go:build !unix

package pgtest

import "os/exec"

// owner is the user that the server runs as: this one.
type owner struct{}

func newOwner(string) (owner, error) { return owner{}, nil }

func (owner) apply(*exec.Cmd) {}
