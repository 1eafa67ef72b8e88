package markdown

import (
	"bytes"
	"net/url"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	table "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// rel is the rel attribute of every link. The linked page learns nothing about cairn's page and
// gains no ranking.
const rel = "noopener noreferrer nofollow"

const (
	maxCells     = 20_000  // in all tables of a text
	maxAddress   = 2048    // bytes of the URL of a link
	minAddresses = 100_000 // bytes of all URLs that even a short text may contain
)

// safeTree removes from a parsed text everything that a page may not contain or that produces
// much output from little text.
type safeTree struct{}

// Transform implements parser.ASTTransformer.
func (safeTree) Transform(document *ast.Document, reader text.Reader, _ parser.Context) {
	budget := max(len(reader.Source()), minAddresses)
	var nodes []ast.Node // children before their parents, so that each is still in the tree
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			nodes = append(nodes, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.AutoLink:
			if url := n.URL(reader.Source()); n.AutoLinkType == ast.AutoLinkURL && !leads(url) {
				shown := ast.NewString(n.Label(reader.Source()))
				shown.SetRaw(true)
				replace(n, shown)
			}
			n.SetAttributeString("rel", []byte(rel))
		case *ast.FencedCodeBlock:
			if !language().Match(n.Language(reader.Source())) {
				parent := n.Parent()
				code := ast.NewCodeBlock()
				code.SetLines(n.Lines())
				parent.ReplaceChild(parent, n, code)
			}
		case *ast.Image:
			changeImage(n)
		case *ast.Link:
			n.Title = nil
			n.SetAttributeString("rel", []byte(rel))
			if budget -= len(n.Destination); budget < 0 || !leads(n.Destination) {
				unwrap(n)
			}
		case *table.TableCell:
			if class := n.Alignment; class == table.AlignCenter || class == table.AlignRight {
				n.SetAttributeString("class", []byte(class.String()))
			}
		case *table.TaskCheckBox:
			replace(n, ast.NewString([]byte(map[bool]string{false: "☐ ", true: "☑ "}[n.IsChecked])))
		}
	}
}

// leads reports whether a URL is allowed in a link.
func leads(address []byte) bool {
	u, err := url.Parse(string(address))
	if err != nil || len(address) > maxAddress {
		return false
	}
	switch u.Scheme { // in lower case
	case "http", "https":
		return u.Host != ""
	case "mailto":
		return u.Opaque != ""
	}
	return false
}

// changeImage keeps an image that is a data: URL. It replaces an image with another allowed URL
// by a link, and any other image by its text.
func changeImage(n *ast.Image) {
	n.Title = nil
	if imageData().Match(n.Destination) {
		return
	}
	if !leads(n.Destination) {
		unwrap(n)
		return
	}
	if n.FirstChild() == nil {
		n.AppendChild(n, ast.NewString([]byte("image")))
	}
	for p := n.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == ast.KindLink {
			unwrap(n)
			return
		}
	}
	link := ast.NewLink()
	link.Destination = n.Destination
	link.SetAttributeString("rel", []byte(rel))
	replace(n, link)
	moveChildren(n, func(c ast.Node) { link.AppendChild(link, c) })
}

func replace(old, fresh ast.Node) { old.Parent().ReplaceChild(old.Parent(), old, fresh) }

// unwrap replaces a node by its children.
func unwrap(n ast.Node) {
	parent := n.Parent()
	moveChildren(n, func(c ast.Node) { parent.InsertBefore(parent, n, c) })
	parent.RemoveChild(parent, n)
}

func moveChildren(n ast.Node, to func(ast.Node)) {
	for c := n.FirstChild(); c != nil; c = n.FirstChild() {
		n.RemoveChild(n, c)
		to(c)
	}
}

// tables parses tables. If a table would raise the number of cells of the text above maxCells, it
// stays a paragraph. Rows are filled up to the width of their table, so without a limit 128 KiB
// could produce 500 million cells.
type tables struct {
	parser.ParagraphTransformer
}

// cellsKey is the key of the number of table cells in a text's context. goldmark counts its keys
// without a lock, so the key is created when the program starts.
var cellsKey = parser.NewContextKey()

func newTables() tables { return tables{extension.NewTableParagraphTransformer()} }

// Transform implements parser.ParagraphTransformer.
func (t tables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	width := 0
	for _, line := range node.Lines().Sliced(0, node.Lines().Len()) {
		width = max(width, bytes.Count(line.Value(reader.Source()), []byte("|"))+1)
	}
	before, _ := pc.Get(cellsKey).(int)
	cells := before + width*node.Lines().Len()
	if width > 1 && cells > maxCells {
		return
	}
	if width > 1 {
		pc.Set(cellsKey, cells)
	}
	t.ParagraphTransformer.Transform(node, reader, pc)
}
