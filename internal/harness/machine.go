package harness

import "strings"

// Typed returns the user's text in a prompt, "" if nothing is left. It removes the blocks that
// harnesses add (observations §6) and the white space around them. A slash command is inside such
// blocks: with arguments it becomes "/name arguments", without arguments it is removed. Text
// without blocks is returned unchanged.
//
// A block without a closing tag is removed only at the beginning of the text, because users do not
// type such a beginning. The running time is linear in the length.
func Typed(prompt string) string {
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

// cutter scans a prompt from left to right.
type cutter struct {
	text  string
	start int // the start of the text that is neither kept nor cut yet
	at    int // the position where the scan continues
	cut   bool
	kept  []string
	name  string // the name of a slash command
	args  string
	last  map[string]int // the position of the last closing tag of each kind of block, nil until needed
}

const (
	Interrupted  = "[Request interrupted"
	notification = "[SYSTEM NOTIFICATION - NOT USER INPUT]"

	MaxTag = 200 // maximum length in bytes of a bracket or of a tag's attributes
)

// step handles the next position where a block may begin. It reports whether there was one.
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
	case strings.HasPrefix(rest, Interrupted):
		end := strings.IndexAny(rest[:min(len(rest), MaxTag)], "]\n")
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

// tag removes the block whose opening tag is at i, if there is one.
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

// keep keeps the text up to i as the user's text.
func (c *cutter) keep(i int) {
	if part := strings.TrimSpace(c.text[c.start:i]); part != "" {
		c.kept = append(c.kept, part)
	}
}

func (c *cutter) remove(from, to int) {
	c.keep(from)
	c.cut, c.start, c.at = true, to, to
}

// endOf returns the position of a block's closing tag. The block's content starts at from.
func (c *cutter) endOf(name string, from int) (int, bool) {
	if c.last == nil {
		c.last = closingTags(c.text)
	}
	if last, ok := c.last[name]; !ok || last < from {
		return 0, false // no search here: many unclosed tags would take quadratic time
	}
	return from + strings.Index(c.text[from:], "</"+name+">"), true
}

// command returns the slash command in the prompt, "" if there is none or it has no arguments.
func (c *cutter) command() string {
	if c.name == "" || c.args == "" {
		return ""
	}
	return "/" + strings.TrimPrefix(c.name, "/") + " " + c.args
}

// openingTag returns the name of the block at the start of s and the length of its opening tag.
// The length is 0 if s does not begin with such a block.
func openingTag(s string) (string, int) {
	n := 1
	for n < len(s) && IsNameByte(s[n]) {
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
	end := strings.IndexAny(s[n:min(len(s), n+MaxTag)], "<>\n")
	if end < 0 || s[n+end] != '>' {
		return "", 0
	}
	return name, n + end + 1
}

// IsNameByte reports whether a byte may occur in the name of a tag.
func IsNameByte(c byte) bool {
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

// closingTags returns the position of the last closing tag of each kind of block.
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
		for end < len(s) && IsNameByte(s[end]) {
			end++
		}
		if end < len(s) && s[end] == '>' && isMachineTag(s[i:end]) {
			last[s[i:end]] = at
		}
		i = end
	}
}
