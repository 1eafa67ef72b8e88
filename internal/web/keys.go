package web

import "net/http"

// keyHelp is a keyboard key and its action.
type keyHelp struct {
	Keys string `json:"keys"`
	Does string `json:"does"`
}

// keys lists the keyboard keys that the script handles.
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
