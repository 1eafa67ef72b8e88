package project

import "strings"

// maxOrigin is the maximum length of a remote's address in bytes; a longer address is
// ignored.
const maxOrigin = 2000

// withoutCredentials removes user names, passwords and query strings from a remote's
// address, because it is stored and often contains tokens. The user of an SSH address
// stays, because it is part of the name.
func withoutCredentials(url string) string {
	if len(url) > maxOrigin || strings.ContainsAny(url, "\x00\n") {
		return ""
	}
	scheme, rest, isURL := strings.Cut(url, "://")
	if !isURL {
		if before, after, ok := cutLast(url, "@"); ok && strings.Contains(before, ":") && !strings.ContainsAny(before, `/\`) {
			return after
		}
		return url
	}
	if cut := strings.IndexAny(rest, "?#"); cut >= 0 {
		rest = rest[:cut]
	}
	authority, path, hasPath := strings.Cut(rest, "/")
	if user, host, ok := cutLast(authority, "@"); ok {
		authority = host
		if name, _, _ := strings.Cut(user, ":"); strings.HasSuffix(strings.ToLower(scheme), "ssh") && name != "" {
			authority = name + "@" + host
		}
	}
	if hasPath {
		path = "/" + path
	}
	return scheme + "://" + authority + path
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}
