package harness

import "strings"

// typed is what a person wrote in a prompt: the blocks that harnesses put into
// one (observations §6) are cut out and the white space around the cuts goes
// with them. A slash command comes in such blocks; one that has arguments is
// put back together as "/name arguments", one without is dropped. Text without
// blocks comes back unchanged. It is "" if nothing is left.
//
// A block without its end is cut only where the text begins with it, since then
// nobody typed it. The time is linear in the length.
func typed(prompt string) string {
	if !strings.ContainsAny(prompt, "<[") {
		return prompt
	}
	c := cutter{text: prompt}
	for c.step() {
	}
	if !c.cut {
		return prompt
	}
	c.keep(len(c.text))
	if command := c.command(); command != "" {
		c.kept = append([]string{command}, c.kept...)
	}
	return strings.Join(c.kept, "\n")
}

// cutter goes through a prompt from left to right.
type cutter struct {
	text  string
	start int // of what is neither kept nor cut yet
	at    int // where to look on
	cut   bool
	kept  []string
	name  string // of a slash command
	args  string
	last  map[string]int // the place of the last end of each kind of block, nil until needed
}

const (
	interrupted  = "[Request interrupted"
	notification = "[SYSTEM NOTIFICATION - NOT USER INPUT]"

	maxTag = 200 // bytes that a bracket or the attributes of a tag may have
)

// step looks at the next place where a block may begin and reports whether there
// was one.
func (c *cutter) step() bool {
	i := strings.IndexAny(c.text[c.at:], "<[")
	if i < 0 {
		return false
	}
	i += c.at
	first := len(c.kept) == 0 && c.at == c.start && strings.TrimSpace(c.text[c.start:i]) == ""
	rest := c.text[i:]
	switch {
	case first && strings.HasPrefix(rest, notification):
		c.remove(i, len(c.text))
	case strings.HasPrefix(rest, interrupted):
		end := strings.IndexAny(rest[:min(len(rest), maxTag)], "]\n")
		if end >= 0 && rest[end] == ']' {
			c.remove(i, i+end+1)
		} else if first {
			c.remove(i, len(c.text))
		} else {
			c.at = i + 1
		}
	default:
		c.tag(i, first)
	}
	return true
}

// tag cuts the block whose opening tag is at i, if there is one.
func (c *cutter) tag(i int, first bool) {
	name, open := openingTag(c.text[i:])
	if open == 0 {
		c.at = i + 1
		return
	}
	inside := i + open
	end, ok := c.endOf(name, inside)
	if !ok {
		if first {
			c.remove(i, len(c.text))
		} else {
			c.at = inside
		}
		return
	}
	switch name {
	case "command-name":
		c.name = strings.TrimSpace(c.text[inside:end])
	case "command-args":
		c.args = strings.TrimSpace(c.text[inside:end])
	}
	c.remove(i, end+len("</>")+len(name))
}

// keep takes the text up to i as typed.
func (c *cutter) keep(i int) {
	if part := strings.TrimSpace(c.text[c.start:i]); part != "" {
		c.kept = append(c.kept, part)
	}
}

func (c *cutter) remove(from, to int) {
	c.keep(from)
	c.cut, c.start, c.at = true, to, to
}

// endOf returns the place of the closing tag of a block whose inside starts at from.
func (c *cutter) endOf(name string, from int) (int, bool) {
	if c.last == nil {
		c.last = closingTags(c.text)
	}
	if last, ok := c.last[name]; !ok || last < from {
		return 0, false // without a search, or many open tags would cost their square
	}
	return from + strings.Index(c.text[from:], "</"+name+">"), true
}

// command returns the slash command that stood in the prompt, "" if none did or it
// has no arguments.
func (c *cutter) command() string {
	if c.name == "" || c.args == "" {
		return ""
	}
	return "/" + strings.TrimPrefix(c.name, "/") + " " + c.args
}

// openingTag returns the name of the block that s begins with and the length of its
// opening tag, 0 if s begins with no such block.
func openingTag(s string) (string, int) {
	n := 1
	for n < len(s) && isNameByte(s[n]) {
		n++
	}
	name := s[1:n]
	if !isMachineTag(name) || n == len(s) {
		return "", 0
	}
	if s[n] == '>' {
		return name, n + 1
	}
	if s[n] != ' ' {
		return "", 0
	}
	end := strings.IndexAny(s[n:min(len(s), n+maxTag)], "<>\n")
	if end < 0 || s[n+end] != '>' {
		return "", 0
	}
	return name, n + end + 1
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || c == '-' || c == '_' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isMachineTag(name string) bool {
	switch name {
	case "system-reminder", "task-notification":
		return true
	}
	for _, prefix := range []string{"local-command-", "command-", "bash-", "ide_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// closingTags finds the last closing tag of every kind of block.
func closingTags(s string) map[string]int {
	last := map[string]int{}
	for i := 0; ; {
		n := strings.Index(s[i:], "</")
		if n < 0 {
			return last
		}
		at := i + n
		i = at + 2
		end := i
		for end < len(s) && isNameByte(s[end]) {
			end++
		}
		if end < len(s) && s[end] == '>' && isMachineTag(s[i:end]) {
			last[s[i:end]] = at
		}
		i = end
	}
}
