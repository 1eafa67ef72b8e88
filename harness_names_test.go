package cairn_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/harness"
)

// What a harness does is in the table of internal/harness; a comparison with a name
// anywhere else would have to be found and extended for the next one.
func TestNothingOutsideTheTableComparesWithTheNameOfAHarness(t *testing.T) {
	t.Parallel()
	names := []string{}
	for _, h := range harness.Harnesses() {
		names = append(append(names, h.Name, h.Program), h.Aliases...)
	}
	// Lines of Gemini CLI's transcripts have such a type.
	allowed := map[string]string{"internal/harness/gemini_transcript.go": "gemini"}
	seen := 0
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if e.IsDir() && (e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") && path != ".") || isTool(dir) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		inHarness := dir == "internal/harness"
		for _, name := range comparedNames(file, inHarness) {
			if slices.Contains(names, name) && allowed[filepath.ToSlash(path)] != name {
				t.Errorf("%s compares with %q; ask the harness's value in internal/harness/table.go", path, name)
			}
		}
		return nil
	})
	if err != nil || seen < 300 {
		t.Fatalf("%d files, %v", seen, err)
	}
}

// comparedNames are the texts that a file compares with, in conditions and cases; those
// behind the constants of the harness room, too, which are named as what they hold.
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
