package web

import "net/http"

// keyHelp is a key with what it does.
type keyHelp struct {
	Keys string `json:"keys"`
	Does string `json:"does"`
}

// keys lists the keys that the script understands.
func (s *Site) keys(r *http.Request, v Visitor, _ place) (Response, error) {
	list := []keyHelp{
		{"/", "search"}, {"j  k", "next and previous row"}, {"Enter", "open the row"}, {"o", "fold or unfold"},
		{"[  ]", "earlier and later session, page or version"}, {"n  p", "next and previous failure"},
	}
	for _, section := range Sections() {
		list = append(list, keyHelp{"g " + section.Key, "go to " + section.Name})
	}
	list = append(list, keyHelp{"w", "in a file: why is this line so"}, keyHelp{".", "pause live updates, or continue"},
		keyHelp{"Esc", "leave a field"}, keyHelp{"?", "this list"})
	return s.show(r, v, "keys", "Keys", list)
}
