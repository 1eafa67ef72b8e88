package cairn_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"cairn/internal/harness/harnesses"
)

// The behavior of a harness is defined in its package below internal/harness. Comparisons with a
// name anywhere else would have to be found and extended for each new harness.
func TestNothingOutsideTheTableComparesWithTheNameOfAHarness(t *testing.T) {
	t.Parallel()
	names := []string{}
	for _, h := range harnesses.All() {
		names = append(append(names, h.Name, h.Program), h.Aliases...)
	}
	// Lines of Gemini CLI's transcripts have this type.
	allowed := map[string]string{"internal/harness/gemini/transcript.go": "gemini"}
	for _, path := range productFiles(t) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range comparedNames(file) {
			if slices.Contains(names, name) && allowed[path] != name {
				t.Errorf("%s compares with %q; ask the harness's value, see internal/harness", path, name)
			}
		}
	}
}

// comparedNames returns the texts that a file compares values with, in conditions and
// cases.
func comparedNames(file *ast.File) (names []string) {
	add := func(e ast.Expr) {
		if e, ok := e.(*ast.BasicLit); ok && e.Kind == token.STRING {
			if s, err := strconv.Unquote(e.Value); err == nil {
				names = append(names, s)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				add(n.X)
				add(n.Y)
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				add(e)
			}
		}
		return true
	})
	return names
}
