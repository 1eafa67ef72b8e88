package markdown

import (
	"regexp"
	"strings"
	"sync"
)

// The expressions are compiled when the first text is rendered. Otherwise every cairn command
// would compile them at its start.
var (
	// imageData matches a data: URL of an image.
	imageData = lazy(`(?i:data:image/(?:png|jpeg|gif|webp);base64),[A-Za-z0-9+/=]+`)

	// language matches the name of a programming language that becomes a class.
	language = lazy(`[A-Za-z0-9+\-_#.]{1,40}`)

	// opening matches the inside of every start tag that a page may contain. goldmark escapes
	// quotes and angle brackets in attribute values.
	opening = lazy(strings.Join([]string{
		`h[1-6]|p|ul|ol|li|blockquote|pre|code|em|strong|del|hr|br|table|thead|tbody|tr|th|td`,
		`a href="(?i:https?://|mailto:)[^"<>\x00-\x20\x7f]*" rel="` + rel + `"`,
		`img src="(?i:data:image/(?:png|jpeg|gif|webp);base64),[A-Za-z0-9+/=]+" alt="[^"<>]*"`,
		`ol start="[0-9]{1,9}"`,
		`code class="language-[A-Za-z0-9+\-_#.]{1,40}"`,
		`t[hd] class="(?:center|right)"`,
	}, "|"))
)

// lazy returns a function that compiles the expression at its first call. The expression matches
// whole texts.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + expression + `)$`) })
}

// maxDepth is the maximum depth of nested elements. Browsers flatten or refuse deeper ones.
const maxDepth = 100

// finish returns HTML with hidden characters replaced by their code points, and without the tags
// below maxDepth; their text stays. It returns false if the HTML contains a tag that is not
// allowed, or unbalanced tags.
func finish(rendered string) (string, bool) {
	var out strings.Builder
	var open []string // names of the open elements
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

// mark writes HTML text, with hidden characters replaced by their code points.
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
