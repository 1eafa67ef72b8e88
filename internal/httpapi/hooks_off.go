//go:build !testhooks

package httpapi

import "net/http"

// answering is what a listener serves instead of h: in this build h (memories §15).
func answering(h http.Handler) http.Handler { return h }
