//go:build !testhooks

package httpapi

import "net/http"

// passAfterAck returns the handler of a listener: in this build h itself (memories §15).
func passAfterAck(h http.Handler) http.Handler { return h }
