package cairn_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// owned is the table of ARCHITECTURE.md, under "Tables": which package owns a table,
// and whether others may read it.
type owned struct {
	owner    string
	readable bool
}

// readTables reads the rows `| package | tables | others may read |`.
func readTables(text string) map[string]owned {
	tables := map[string]owned{}
	_, text, _ = strings.Cut(text, "\n## Tables\n")
	text, _, _ = strings.Cut(text, "\n## ")
	names := regexp.MustCompile("`?([a-z_]+)`?")
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`internal/") {
			continue
		}
		for i, cell := range cells[2:4] {
			for _, name := range names.FindAllStringSubmatch(cell, -1) {
				tables[name[1]] = owned{strings.Trim(cells[1], " `"), i == 1}
			}
		}
	}
	return tables
}

// use is a place that names a table.
type use struct {
	at    string // file:line
	table string
	write bool
}

// The words of SQL: a comment and a text in quotes count as nothing.
var sqlWord = regexp.MustCompile(`--[^\n]*|'[^']*'|[A-Za-z_][A-Za-z_0-9]*|[(),;.]|\S`)

// namedTables returns the tables that a piece of SQL names, and which of them it writes.
func namedTables(sql string, known map[string]owned) map[string]bool {
	found := map[string]bool{}
	words := slices.DeleteFunc(sqlWord.FindAllString(sql, -1), func(w string) bool { return w[0] == '\'' || strings.HasPrefix(w, "--") })
	depth, from := 0, map[int]bool{} // whether a comma at a depth separates tables
	for i, word := range words {
		switch word {
		case "(":
			depth++
		case ")":
			from[depth] = false
			depth--
		case "FROM":
			from[depth] = true
		case "WHERE", "ON", "SET", "GROUP", "ORDER", "LIMIT", "UNION", "SELECT", "VALUES", ";":
			from[depth] = false
		}
		if _, ok := known[word]; !ok || i == 0 {
			continue
		}
		before := words[i-1]
		deleted := before == "FROM" && i > 1 && words[i-2] == "DELETE"
		changed := before == "UPDATE" || i > 2 && words[i-2] == "OR" && words[i-3] == "UPDATE"
		switch {
		case before == "INTO", before == "TABLE", deleted, changed && (i < 3 || words[i-2] != "DO"):
			found[word] = true
		case before == "FROM", before == "JOIN", before == "IN", before == "," && from[depth]:
			found[word] = found[word] || false
		}
	}
	return found
}

// constants are the constant texts of a package, by name.
func constants(files []*ast.File) map[string]ast.Expr {
	named := map[string]ast.Expr{}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, value := range v.Values {
					named[v.Names[i].Name] = value
				}
			}
		}
	}
	return named
}

// textOf puts a text together out of its pieces; what is no constant is a blank.
func textOf(e ast.Expr, named map[string]ast.Expr, depth int) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return textOf(e.X, named, depth) + textOf(e.Y, named, depth)
		}
	case *ast.ParenExpr:
		return textOf(e.X, named, depth)
	case *ast.Ident:
		if value, ok := named[e.Name]; ok && depth < 10 {
			return textOf(value, named, depth+1)
		}
	}
	return " "
}

// usesIn returns the tables that the files of one package name: in SQL, and as a text
// that is the name of a table alone, out of which SQL may be made.
func usesIn(files *token.FileSet, all []*ast.File, known map[string]owned) (uses []use) {
	named := constants(all)
	for _, f := range all {
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			_, sum := e.(*ast.BinaryExpr)
			literal, ok := e.(*ast.BasicLit)
			if !sum && (!ok || literal.Kind != token.STRING) {
				return true
			}
			text := textOf(e, named, 0)
			at := files.Position(e.Pos())
			add := func(table string, write bool) {
				uses = append(uses, use{fmt.Sprintf("%s:%d", filepath.ToSlash(at.Filename), at.Line), table, write})
			}
			found := namedTables(text, known)
			for _, table := range slices.Sorted(maps.Keys(found)) {
				add(table, found[table])
			}
			if _, ok := known[text]; ok && strings.Contains(text, "_") {
				add(text, true)
			}
			return !sum
		})
	}
	return uses
}

// crossing says what a use breaks, "" if nothing.
func crossing(dir string, u use, known map[string]owned) string {
	t := known[u.table]
	if t.owner == dir || t.readable && !u.write {
		return ""
	}
	verb := "reads"
	if u.write {
		verb = "writes"
	}
	return fmt.Sprintf("%s: %s %s %s, which belongs to %s", u.at, dir, verb, u.table, t.owner)
}

// TestATableIsNamedByItsOwnerAlone: see ARCHITECTURE.md, Tables.
func TestATableIsNamedByItsOwnerAlone(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	known := readTables(string(text))
	for dir, paths := range sourceFiles(t) {
		files := token.NewFileSet()
		var all []*ast.File
		for _, path := range paths {
			f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, f)
		}
		for _, u := range usesIn(files, all, known) {
			if broken := crossing(dir, u, known); broken != "" {
				t.Error(broken)
			}
		}
	}
}

// sourceFiles are the files of the product outside tests, by package.
func sourceFiles(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "dist") {
			return filepath.SkipDir
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !isTool(dir) {
			found[dir] = append(found[dir], path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatal(errors.Join(err, errors.New("no files")))
	}
	return found
}
