package markdown

import (
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
)

// imageData matches the address of an image that is its own data.
const imageData = `^(?i:data:image/(png|jpeg|gif|webp);base64),[A-Za-z0-9+/=]+$`

// newPolicy returns what HTML may contain. image matches addresses of images.
func newPolicy(image *regexp.Regexp) *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "pre", "code",
		"em", "strong", "del", "hr", "br", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("rel").Matching(regexp.MustCompile("^" + rel + "$")).OnElements("a")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[A-Za-z0-9+\-_#.]{1,40}$`)).OnElements("code")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(center|right)$`)).OnElements("th", "td")
	p.AllowAttrs("src").Matching(image).OnElements("img")
	p.AllowAttrs("alt").OnElements("img")
	p.AllowDataURIImages()
	return p
}

// maxDepth is how many elements are nested: browsers flatten or refuse deeper ones.
const maxDepth = 100

// finish shows hidden characters of clean HTML by their numbers, and leaves out the
// elements below maxDepth, without their content.
func finish(clean string) string {
	var out strings.Builder
	var written []bool // whether each open element was
	for clean != "" {
		var words string
		words, clean, _ = strings.Cut(clean, "<")
		mark(&out, words)
		if clean == "" {
			break
		}
		var tag string
		tag, clean, _ = strings.Cut(clean, ">")
		name, _, _ := strings.Cut(tag, " ")
		write := len(written) < maxDepth
		switch {
		case name[0] == '/':
			write = written[len(written)-1]
			written = written[:len(written)-1]
		case name != "br" && name != "hr" && name != "img":
			written = append(written, write)
		}
		if write {
			out.WriteString("<" + Visible(tag) + ">")
		}
	}
	return out.String()
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
