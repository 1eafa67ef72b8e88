//go:build !pictures

package main

import (
	"context"
	"errors"
)

// fillForPictures is available with the build tag pictures. Without it the demo does not link
// cairn, so it is built in a moment.
func (h *home) fillForPictures(context.Context) error {
	return errors.New("--pictures requires the build tag pictures")
}
