package cairn_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/harness"
)

// The behavior of a harness is defined in the table of internal/harness. Comparisons with a
// name anywhere else would have to be found and extended for each new harness.
func TestNothingOutsideTheTableComparesWithTheNameOfAHarness(t *testing.T) {
	t.Parallel()
	names := []string{}
	for _, h := range harness.Harnesses() {
		names = append(append(names, h.Name, h.Program), h.Aliases...)
	}
	// Lines of Gemini CLI's transcripts have this type.
	allowed := map[string]string{"internal/harness/gemini_transcript.go": "gemini"}
	for _, path := range productFiles(t) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range comparedNames(file, strings.HasPrefix(path, "internal/harness/")) {
			if slices.Contains(names, name) && allowed[path] != name {
				t.Errorf("%s compares with %q; ask the harness's value in internal/harness/table.go", path, name)
			}
		}
	}
}

// comparedNames returns the texts that a file compares values with, in conditions and
// cases. It includes the constants of the harness package, which are named after their
// values.
func comparedNames(file *ast.File, inHarness bool) (names []string) {
	add := func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
				names = append(names, s)
			}
		case *ast.Ident:
			if inHarness {
				names = append(names, e.Name)
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
