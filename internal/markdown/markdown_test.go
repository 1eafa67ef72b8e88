package markdown

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"cairn/internal/markdown/hostiletest"
)

// wrong returns a description of forbidden content in HTML as a browser parses it, or "".
func wrong(text string) string {
	body := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragment(strings.NewReader(text), body)
	if err != nil {
		return err.Error()
	}
	for _, n := range nodes {
		body.AppendChild(n)
	}
	for n := range body.Descendants() {
		switch n.Type {
		case html.TextNode:
			continue
		case html.ElementNode:
		default:
			return fmt.Sprintf("a node of type %d: %.80q", n.Type, n.Data)
		}
		allowed, ok := attributes()[n.Data]
		if !ok || n.Namespace != "" {
			return fmt.Sprintf("<%s>", n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(allowed, a.Key) || a.Namespace != "" || !valueOK(n.Data, a.Key, a.Val) {
				return fmt.Sprintf("<%s %s=%.200q>", n.Data, a.Key, a.Val)
			}
		}
	}
	return ""
}

func attributes() map[string][]string {
	out := map[string][]string{
		"a": {"href", "rel"}, "img": {"src", "alt"}, "code": {"class"}, "span": {"class"}, "ol": {"start"}, "th": {"class"}, "td": {"class"},
	}
	for name := range strings.FieldsSeq("h1 h2 h3 h4 h5 h6 p ul li blockquote pre em strong del hr br table thead tbody tr") {
		out[name] = nil
	}
	return out
}

func valueOK(element, key, value string) bool {
	switch key {
	case "href":
		lower := strings.ToLower(value)
		return !strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == 0x7f }) &&
			(strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "mailto:"))
	case "rel":
		return value == "noopener noreferrer nofollow"
	case "src":
		for _, kind := range []string{"png", "jpeg", "gif", "webp"} {
			if strings.HasPrefix(strings.ToLower(value), "data:image/"+kind+";base64,") {
				return true
			}
		}
		return false
	case "class":
		return element == "span" && value == "mark" || element[0] == 't' && (value == "center" || value == "right") ||
			element == "code" && strings.HasPrefix(value, "language-")
	}
	return true
}

func TestHostileTextsBecomePagesThatHoldNothingActive(t *testing.T) {
	t.Parallel()
	all := hostiletest.Bodies()
	if len(all) < 65 {
		t.Errorf("only %d texts", len(all))
	}
	for _, b := range all {
		start := time.Now()
		out := New().HTML(b.Text)
		if bad := wrong(out); bad != "" {
			t.Errorf("%s: %s", b.Name, bad)
		}
		if len(out) > 12*len(b.Text)+3_000_000 {
			t.Errorf("%s: %d bytes of %d", b.Name, len(out), len(b.Text))
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s takes %v", b.Name, took)
		}
	}
}

func TestAnyTextBecomesAPageThatHoldsNothingActiveInPieces(t *testing.T) {
	t.Parallel()
	// Put every text into, before and after every kind of block and inline element.
	for _, b := range hostiletest.Bodies() {
		if len(b.Text) > 1000 {
			continue
		}
		for _, around := range []string{"> %s", "- %s", "| a |\n|---|\n| %s |", "**%s**", "[%s](https://a.example)", "[x](%s)", "[x](<%s>)", "![%s](data:image/png;base64,AA)", "[x]: %s\n\n[x]", "`%s`", "~~%s", "<%s>", "https://a.example/%s", "# %s"} {
			text := strings.ReplaceAll(around, "%s", b.Text)
			if bad := wrong(New().HTML(text)); bad != "" {
				t.Errorf("%s in %q: %s", b.Name, around, bad)
			}
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, b := range hostiletest.Bodies() {
		if len(b.Text) < 2000 {
			f.Add(b.Text)
		}
	}
	for _, text := range ordinary() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		if bad := wrong(New().HTML(text)); bad != "" {
			t.Errorf("%q: %s", text, bad)
		}
	})
}

// ordinary returns texts that agents and people typically write.
func ordinary() []string {
	return []string{
		"One line.", "Two\nlines and a  \nbreak, another\\\nbreak.\n\nA paragraph.", "# One\n\n## Two ##\n\n###### Six\n\nTitle\n=====\n\nSub\n---",
		"*em* **strong** ***both*** _em_ __strong__ a*b*c snake_case_name ~~gone~~ ~one~", "`code` ``with ` inside`` `a\nb`",
		"```go\nfunc main() {}\n```\n\n~~~\nplain *text*\n~~~", "    indented\n\n    more\n\ntext",
		"- a\n- b\n  - c\n    - d\n- e", "1. one\n2. two\n3. three\n\nthen\n\n7) seven\n8) eight", "- a\n\n- b\n\n  more of b\n\n- c", "* a\n+ b\n- c",
		"- item\n\n  ```sh\n  make test\n  ```\n- next", "> quote\ngoes on\n>\n> > deeper\n\nafter", "> - list in a quote\n> - two", "---\n\n***\n\n_ _ _",
		"[link](https://a.example/x?a=1&b=2) <https://b.example> https://c.example/path(x). www.d.example, see (https://e.example/y).",
		"[ref][a] and [a] and [A][]\n\n[a]: https://a.example/ref", "![image](data:image/png;base64,iVBORw0KGgo=)", "a@b.example and <c@d.example>",
		"| a | b | c |\n|---|:-:|--:|\n| 1 | **2** | `3` |\n| x | y \\| z | w | more |", "| a | b |\n|---|---|\n| only one |", "before\n\n| a |\n|---|\n\nafter",
		"&amp; &lt; &copy; &#65; &#x41; &nothing; AT&T", `\*not em\* \# \[x\] \\ \a`, "Tabs:\n\n-\ta\n\n\tb\n\n1.\tx", "a * b * c, 2 ** 3, *open", "line\n- list right after\n- two",
		"**bold** at [both **ends**](https://a.example)**, and then**", "1986\\. A year\n\n14. no interruption", "text\n***\ntext", "***\n- a\n***", "a | b\n--|--\n1 | 2",
		"Deep:\n\n1. a\n   - b\n     1. c\n\n        text of c\n   - d\n2. e",
	}
}

// same returns HTML in a normal form, so that the output of the two renderers can be compared.
func same(text string) string {
	var out strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := z.Next()
		t := z.Token()
		switch kind {
		case html.ErrorToken:
			return out.String()
		case html.TextToken:
			words := strings.Join(strings.Fields(t.Data), " ")
			out.WriteString(words)
		case html.EndTagToken:
			out.WriteString("</" + t.Data + ">")
		default:
			out.WriteString("<" + t.Data)
			for _, a := range t.Attr {
				switch a.Key {
				case "href", "src", "alt", "start":
					fmt.Fprintf(&out, " %s=%s", a.Key, a.Val)
				case "class", "style":
					fmt.Fprintf(&out, " %s", strings.TrimPrefix(a.Val, "text-align:"))
				}
			}
			out.WriteString(">")
		}
	}
}

func TestOrdinaryTextReadsAsGitHubsFlavourHasIt(t *testing.T) {
	t.Parallel()
	oracle := goldmark.New(goldmark.WithExtensions(extension.GFM))
	for _, text := range ordinary() {
		var want bytes.Buffer
		if err := oracle.Convert([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if a, b := same(New().HTML(text)), same(want.String()); a != b {
			t.Errorf("%q\n got %s\nwant %s", text, a, b)
		}
	}
}

func TestWhatIsLeftOutIsShownAsItWasTyped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "",
		"\n \n\t\n":                        "",
		"<b>x</b>":                         "<p>&lt;b&gt;x&lt;/b&gt;</p>\n",
		"[x](docs/a.md)":                   "<p>x</p>\n",
		"[x](javascript:y)":                "<p>x</p>\n",
		"[x](http:// )":                    "<p>x</p>\n",
		"- [ ] a\n- [x] b":                 "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>\n",
		"![a](https://b.example/c.png)":    `<p><a href="https://b.example/c.png" rel="noopener noreferrer nofollow">a</a></p>` + "\n",
		"a\u202eb\x1bc":                    `<p>a<span class="mark">U+202E</span>b<span class="mark">U+001B</span>c</p>` + "\n",
		"\x00\xff":                         "<p>\ufffd\ufffd</p>\n",
		"[x](https://a.example \"title\")": `<p><a href="https://a.example" rel="noopener noreferrer nofollow">x</a></p>` + "\n",
		"```a\"b\nx":                       "<pre><code>x\n</code></pre>\n",
	} {
		if got := New().HTML(text); got != want {
			t.Errorf("%q\n got %q\nwant %q", text, got, want)
		}
	}
	if got := Visible("a\u202eb\x1bc"); got != "aU+202EbU+001Bc" {
		t.Errorf("%q", got)
	}
}

func TestALongTextIsShownAsItWasTyped(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("*", maxSource) + "<b>"
	if got, want := New().HTML(text), "<pre><code>"+strings.Repeat("*", maxSource)+"&lt;b&gt;</code></pre>\n"; got != want {
		t.Errorf("%d bytes, beginning %.40q", len(got), got)
	}
}

func TestWhatWouldMakeMuchOfLittleIsShownAsItWasTyped(t *testing.T) {
	t.Parallel()
	typed := func(name, text string) {
		if got := New().HTML(text); !strings.HasPrefix(got, "<pre><code>") {
			t.Errorf("%s become %.80q", name, got)
		}
	}
	typed("many unfinished emphases", strings.Repeat("*a_", maxMarks))
	typed("many unfinished links", strings.Repeat("[a](", maxLinks+1))
	typed("many quotes in a line", strings.Repeat("> ", maxMarkers+1)+"x")
	typed("many lists in a line", strings.Repeat("- ", maxMarkers+1)+"x")
	wide := strings.Repeat("|a", 200) + "\n" + strings.Repeat("|-", 200) + "\n" + strings.Repeat("b\n", maxCells/200)
	if got := New().HTML(wide); strings.Contains(got, "<td") {
		t.Errorf("a wide table becomes %.80q", got)
	}
	if got := New().HTML(strings.Repeat("> ", maxMarkers) + "x"); strings.Count(got, "<blockquote>") != maxDepth || wrong(got) != "" {
		t.Errorf("deep quotes become %d elements", strings.Count(got, "<blockquote>"))
	}
	dashes := strings.Repeat("-", 2*maxMarkers)
	if got := New().HTML("a\n\n" + dashes); got != "<p>a</p>\n<hr>\n" {
		t.Errorf("a long rule becomes %.80q", got)
	}
}

func TestNoTextCostsMoreThanItsLength(t *testing.T) {
	t.Parallel()
	n := maxSource
	if testing.Short() {
		n = 1 << 16
	}
	of := func(s string) string { return strings.Repeat(s, n/len(s)) }
	for _, s := range []string{
		">", "> > > > > > > > x\n", "[", "[a", "[a](", "[a](b", "[a](<b", "![a](data:image/png;base64,AA", "*a_", "*a **b ", "_a", "~a~~b", "`", "(http://a", "*http://",
		"[a](b \"", "- a\n", "1. ", "- - - x\n", "a\n", "[a]: b\n", "|-|-\n", "a@b", "&", "<", "<a@b.c", "\\", "```\n", "\t", "\u202e",
	} {
		start := time.Now()
		if out := New().HTML(of(s)); len(out) > 40*n {
			t.Errorf("%q: %d bytes of %d", s, len(out), n)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%q takes %v", s, took)
		}
	}
}

func TestFinishRefusesEveryTagOutsideTheList(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"<script>x</script>", "<p onclick=x>a</p>", `<a href="https://a.example">x</a>`, `<img src="https://a.example/x.png" alt="">`,
		`<a href="javascript:x" rel="` + rel + `">x</a>`, `<a href="https://a.example/ x" rel="` + rel + `">x</a>`, `<ol start="-1"></ol>`,
		`<code class="x">a</code>`, `<img src="data:image/svg+xml;base64,AA" alt="">`, "<!-- a -->", "<P>a</P>",
		"<p>a", "<p>a</em></p>", "a</p>", "<p", "<>", "</>",
	} {
		if got, ok := finish(bad); ok {
			t.Errorf("%q becomes %q", bad, got)
		}
	}
}
