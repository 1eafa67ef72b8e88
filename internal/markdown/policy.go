package markdown

import (
	"regexp"
	"strings"
	"sync"
)

// The expressions are compiled when the first text is rendered: every command of cairn would
// pay for them at its start.
var (
	// imageData matches the address of an image that is its own data.
	imageData = lazy(`(?i:data:image/(?:png|jpeg|gif|webp);base64),[A-Za-z0-9+/=]+`)

	// language matches the name of a language that becomes a class.
	language = lazy(`[A-Za-z0-9+\-_#.]{1,40}`)

	// opening matches the inside of every start tag that a page may contain. goldmark escapes
	// quotes and angle brackets in the values of attributes.
	opening = lazy(strings.Join([]string{
		`h[1-6]|p|ul|ol|li|blockquote|pre|code|em|strong|del|hr|br|table|thead|tbody|tr|th|td`,
		`a href="(?i:https?://|mailto:)[^"<>\x00-\x20\x7f]*" rel="` + rel + `"`,
		`img src="(?i:data:image/(?:png|jpeg|gif|webp);base64),[A-Za-z0-9+/=]+" alt="[^"<>]*"`,
		`ol start="[0-9]{1,9}"`,
		`code class="language-[A-Za-z0-9+\-_#.]{1,40}"`,
		`t[hd] class="(?:center|right)"`,
	}, "|"))
)

// lazy returns an expression that matches whole texts and is compiled at its first use.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + expression + `)$`) })
}

// maxDepth is the maximum depth of nested elements: browsers flatten or refuse deeper ones.
const maxDepth = 100

// finish returns HTML with hidden characters replaced by their numbers, and without the
// tags below maxDepth; their text stays. It reports false if the HTML contains a tag that
// a page may not contain, or an end tag without its start tag.
func finish(rendered string) (string, bool) {
	var out strings.Builder
	var open []string // names of the elements that are open
	for rendered != "" {
		words, rest, found := strings.Cut(rendered, "<")
		mark(&out, words)
		if !found {
			break
		}
		tag, rest, ok := strings.Cut(rest, ">")
		if !ok {
			return "", false
		}
		rendered = rest
		name, isEnd := strings.CutPrefix(tag, "/")
		if isEnd {
			if len(open) == 0 || open[len(open)-1] != name {
				return "", false
			}
			if len(open) <= maxDepth {
				out.WriteString("<" + tag + ">")
			}
			open = open[:len(open)-1]
			continue
		}
		if !opening().MatchString(tag) {
			return "", false
		}
		if len(open) < maxDepth {
			out.WriteString("<" + Visible(tag) + ">")
		}
		if name, _, _ = strings.Cut(tag, " "); name != "br" && name != "hr" && name != "img" {
			open = append(open, name)
		}
	}
	return out.String(), len(open) == 0
}

// mark writes text of HTML with the numbers of hidden characters in place of them.
func mark(out *strings.Builder, words string) {
	if strings.IndexFunc(words, hidden) < 0 {
		out.WriteString(words)
		return
	}
	for _, r := range words {
		if hidden(r) {
			out.WriteString(`<span class="mark">` + name(r) + `</span>`)
		} else {
			out.WriteRune(r)
		}
	}
}
