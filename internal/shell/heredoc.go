package shell

import "strings"

// heredoc is a here-document whose text comes after the current line.
type heredoc struct {
	end  string
	tabs bool // leading tabs are ignored
}

// scanRedirection skips an operator like 2>&1 or <<EOF. The next word becomes its target, or it
// announces a here-document.
func (s *shellScanner) scanRedirection() {
	f := s.list()
	if f.inWord && f.plain < 0 && strings.Trim(string(f.text), "0123456789") == "" {
		f.text, f.inWord = f.text[:0], false // the number of the stream
	}
	s.endWord()
	switch {
	case s.powerShell && s.at("<#"):
		s.skipTo("#>", len("#>"))
	case s.at("<(") || s.at(">("):
		s.addQuoted("$")
		s.openList(')', 2)
	case s.at("<<") && !s.powerShell:
		s.pos += 2
		s.announceHeredoc()
	default:
		f.target = true
		s.pos++
		for s.pos < len(s.src) && strings.IndexByte("<>&|", s.src[s.pos]) >= 0 && !s.at(">(") && !s.at("<(") {
			s.pos++
		}
	}
}

// announceHeredoc reads the word that ends a here-document. At the third < of a here-string it
// finds no word, and the rest is read as an ordinary redirection.
func (s *shellScanner) announceHeredoc() {
	h := heredoc{tabs: s.at("-")}
	if h.tabs {
		s.pos++
	}
	rest := strings.TrimLeft(s.src[s.pos:], " \t")
	s.pos = len(s.src) - len(rest)
	quote := byte(0)
	var end []byte
	for ; s.pos < len(s.src); s.pos++ {
		c := s.src[s.pos]
		switch {
		case c == '\n' || quote == 0 && strings.IndexByte(" \t\r;&|<>()", c) >= 0:
			quote = 0
		case c == quote:
			quote = 0
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
			continue
		case c == '\\' && quote != '\'':
			continue
		default:
			end = append(end, c)
			continue
		}
		break
	}
	if len(end) > 0 {
		h.end = string(end)
		s.heredocs = append(s.heredocs, h)
	}
}

// skipHeredocs skips the texts announced on the line before. In a substitution the closing
// parenthesis may immediately follow the end word.
func (s *shellScanner) skipHeredocs() {
	for _, h := range s.heredocs {
		for s.pos < len(s.src) {
			line, _, _ := strings.Cut(s.src[s.pos:], "\n")
			start := s.pos
			s.pos = min(s.pos+len(line)+1, len(s.src))
			text := strings.TrimSuffix(line, "\r")
			if h.tabs {
				text = strings.TrimLeft(text, "\t")
			}
			if text == h.end {
				break
			}
			if rest, ok := strings.CutPrefix(text, h.end); ok && s.list().closer == ')' && strings.HasPrefix(rest, ")") {
				s.pos = start + len(line) - len(strings.TrimLeft(line, "\t")) + len(h.end)
				break
			}
		}
	}
	s.heredocs = s.heredocs[:0]
}
