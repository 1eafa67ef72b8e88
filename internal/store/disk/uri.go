package disk

import (
	"net/url"
	"path/filepath"
	"strings"
)

// URI returns the SQLite URI of a file, with the characters that would end a path
// escaped.
func URI(path, query string) string {
	p := filepath.ToSlash(path)
	switch {
	case strings.HasPrefix(p, "//"):
		p = "//" + p // else the first folder would be treated as a host
	case filepath.VolumeName(path) != "":
		p = "/" + p // a drive letter
	}
	esc := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(p)
	u := url.URL{Scheme: "file", Opaque: esc, RawQuery: query}
	return u.String()
}
