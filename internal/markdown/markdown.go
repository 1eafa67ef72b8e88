package markdown

import (
	"html"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// maxSource is the maximum length, in bytes, of a text that is parsed as Markdown. A longer
// malicious text could take seconds.
const maxSource = 128 << 10

// Renderer converts Markdown to HTML. It is safe for concurrent use.
type Renderer struct {
	markdown goldmark.Markdown
}

// New returns a Renderer.
func New() *Renderer {
	blocks := without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())
	inlines := without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())
	return &Renderer{
		markdown: goldmark.New(
			goldmark.WithParser(parser.NewParser(
				parser.WithBlockParsers(blocks...),
				parser.WithInlineParsers(inlines...),
				parser.WithParagraphTransformers(
					append(parser.DefaultParagraphTransformers(), util.Prioritized(newTables(), 200))...,
				),
				parser.WithASTTransformers(util.Prioritized(safeTree{}, 1000)),
			)),
			goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList),
			goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(
				extension.NewTableHTMLRenderer(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)), 500,
			))),
		),
	}
}

// without returns the parsers except left, which is the only one of its type.
func without(all []util.PrioritizedValue, left any) (kept []util.PrioritizedValue) {
	for _, p := range all {
		if p.Value != left {
			kept = append(kept, p)
		}
	}
	return kept
}

// HTML returns a text as HTML without active content, as blocks for the inside of an element. It
// accepts any text and returns "" for an empty one. Some texts are shown literally: those longer
// than 128 KiB, those that are too expensive (see isCheap), and those whose HTML does not pass
// the check of finish.
//
// Elements: h1 to h6, p, ul, ol (start), li, blockquote, pre, code (class language-…), em,
// strong, del, a (href, rel), img (src, alt), hr, br, span (class mark), and the elements of
// tables (class center or right).
func (r *Renderer) HTML(source string) string {
	source = strings.ToValidUTF8(strings.ReplaceAll(source, "\x00", "\ufffd"), "\ufffd")
	var out strings.Builder
	if isCheap(source) && r.markdown.Convert([]byte(source), &out) == nil {
		if page, ok := finish(out.String()); ok {
			return page
		}
	}
	var typed strings.Builder
	mark(&typed, html.EscapeString(source))
	return "<pre><code>" + typed.String() + "</code></pre>\n"
}
