package cairn_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// owned describes a table as listed under "Tables" in ARCHITECTURE.md: the package that
// owns it, and whether packages of other parts may read it. It also contains the packages
// of the same part that write the table.
type owned struct {
	owner    string
	readable bool
	writers  []string
}

// partOf returns the part that a package belongs to: "internal/mail" also for the packages
// in its directory.
func partOf(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	return path.Join(parts[:min(len(parts), 2)]...)
}

// readTables reads the rows `| package | tables | others may read |` and, after them, the
// rows `| package | also writes |`.
func readTables(text string) map[string]owned {
	tables := map[string]owned{}
	_, text, _ = strings.Cut(text, "\n## Tables\n")
	text, _, _ = strings.Cut(text, "\n## ")
	names := regexp.MustCompile("`?([a-z_]+)`?")
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`internal/") {
			continue
		}
		dir := strings.Trim(cells[1], " `")
		for i, cell := range cells[2 : len(cells)-1] {
			for _, name := range names.FindAllStringSubmatch(cell, -1) {
				if len(cells) == 5 {
					tables[name[1]] = owned{owner: dir, readable: i == 1}
					continue
				}
				t := tables[name[1]]
				t.writers = append(t.writers, dir)
				tables[name[1]] = t
			}
		}
	}
	return tables
}

// ownerOf returns a table's entry. Tables that FTS5 creates for an index belong to the
// owner of the index.
func ownerOf(name string, known map[string]owned) (owned, bool) {
	t, ok := known[name]
	for _, part := range []string{"_data", "_idx", "_docsize", "_config"} {
		if index, cut := strings.CutSuffix(name, part); cut && !ok {
			t, ok = known[index]
		}
	}
	return t, ok
}

// use is a place in the code that names a table.
type use struct {
	at    string // file:line
	table string
	write bool
}

// The words of SQL. Comments and quoted texts are matched as a whole and ignored.
var sqlWord = regexp.MustCompile(`--[^\n]*|'[^']*'|[A-Za-z_][A-Za-z_0-9]*|[(),;.]|\S`)

// namedTables returns the tables that an SQL text names, and which of them it writes.
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
		case "WHERE", "SET", "GROUP", "ORDER", "LIMIT", "UNION", "SELECT", "VALUES", ";":
			from[depth] = false
		}
		if _, ok := ownerOf(word, known); !ok || i == 0 {
			continue
		}
		before := words[i-1]
		deleted := before == "FROM" && i > 1 && words[i-2] == "DELETE"
		changed := before == "UPDATE" || i > 2 && words[i-2] == "OR" && words[i-3] == "UPDATE"
		switch {
		case before == "INTO", before == "TABLE", deleted, changed:
			found[word] = true
		case before == "FROM", before == "JOIN", before == "IN", before == "REFERENCES", before == "," && from[depth]:
			found[word] = found[word] || false
		}
	}
	return found
}

// constants returns the constant texts of a package, by name.
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

// textOf concatenates the parts of a text. A part that is not constant becomes a blank.
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

// usesIn returns the tables that the files of one package name. It finds names in SQL, and
// texts that consist only of a table's name, from which SQL could be built.
func usesIn(files *token.FileSet, all []*ast.File, known map[string]owned) (uses []use) {
	named := constants(all)
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
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
		found := namedTables(text, known)
		if _, ok := known[text]; ok && strings.Contains(text, "_") {
			found[text] = true
		}
		for _, table := range slices.Sorted(maps.Keys(found)) {
			uses = append(uses, use{fmt.Sprintf("%s:%d", filepath.ToSlash(at.Filename), at.Line), table, found[table]})
		}
		for _, other := range unread(e) {
			ast.Inspect(other, visit)
		}
		return false
	}
	for _, f := range all {
		ast.Inspect(f, visit)
	}
	return uses
}

// unread returns the operands of a sum from which textOf reads nothing.
func unread(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return []ast.Expr{e.X, e.Y}
		}
		return append(unread(e.X), unread(e.Y)...)
	case *ast.ParenExpr:
		return unread(e.X)
	case *ast.BasicLit, *ast.Ident:
		return nil
	}
	return []ast.Expr{e}
}

// crossing describes how a use breaks the rules, or returns "" if the use is allowed.
func crossing(dir string, u use, known map[string]owned) string {
	t, _ := ownerOf(u.table, known)
	switch {
	case t.owner == dir, slices.Contains(t.writers, dir), !u.write && (t.readable || partOf(t.owner) == partOf(dir)):
		return ""
	}
	verb := "reads"
	if u.write {
		verb = "writes"
	}
	return fmt.Sprintf("%s: %s %s %s, which belongs to %s", u.at, dir, verb, u.table, t.owner)
}

func knownTables(t *testing.T) map[string]owned {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	return readTables(string(text))
}

// parseAll parses the files of one package.
func parseAll(t *testing.T, sources map[string]any) (*token.FileSet, []*ast.File) {
	t.Helper()
	files := token.NewFileSet()
	var all []*ast.File
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		f, err := parser.ParseFile(files, path, sources[path], parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return files, all
}

// TestATableIsNamedByItsOwnerAlone enforces the section "Tables" of ARCHITECTURE.md.
func TestATableIsNamedByItsOwnerAlone(t *testing.T) {
	t.Parallel()
	known, seen, writes := knownTables(t), map[string]bool{}, map[string]bool{}
	for dir, sources := range sourceFiles(t) {
		files, all := parseAll(t, sources)
		for _, u := range usesIn(files, all, known) {
			seen[u.table] = true
			writes[dir+" "+u.table] = writes[dir+" "+u.table] || u.write
			if broken := crossing(dir, u, known); broken != "" {
				t.Error(broken)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !seen[name] && !slices.Contains([]string{"change_log", "injections", "observations"}, name) { // these are shown to users
			t.Errorf("no statement names %s", name)
		}
		for _, dir := range known[name].writers {
			if partOf(dir) != partOf(known[name].owner) {
				t.Errorf("%s may write %s, which belongs to another part", dir, name)
			}
			if !writes[dir+" "+name] {
				t.Errorf("%s may write %s, but does not", dir, name)
			}
		}
	}
}

// TestAPartsPackagesReadItsTablesAndOneThatIsListedWritesThem checks what packages in the
// directory of a part may do.
func TestAPartsPackagesReadItsTablesAndOneThatIsListedWritesThem(t *testing.T) {
	t.Parallel()
	known := map[string]owned{"observation_rows": {owner: "internal/observation", writers: []string{"internal/observation/forget"}}}
	for dir, want := range map[string][2]bool{ // may read, may write
		"internal/observation":        {true, true},
		"internal/observation/forget": {true, true},
		"internal/observation/search": {true, false},
		"internal/observations":       {false, false},
		"internal/mail":               {false, false},
	} {
		got := [2]bool{crossing(dir, use{"x.go:1", "observation_rows", false}, known) == "", crossing(dir, use{"x.go:1", "observation_rows", true}, known) == ""}
		if got != want {
			t.Errorf("%s: %v, want %v", dir, got, want)
		}
	}
}

// TestATableOfAnotherPackageIsSeenHoweverItIsNamed checks that the test above can fail.
func TestATableOfAnotherPackageIsSeenHoweverItIsNamed(t *testing.T) {
	t.Parallel()
	const source = `package mail

const (
	records = "records"
	columns = "SELECT r.number " + "FROM " + records + " r "
	own     = "UPDATE mail_agents SET name = ? WHERE id IN (SELECT agent_id FROM mail_sessions)"
	joined  = "SELECT p.id FROM mail_projects m JOIN projects p ON p.key = m.project_key, observation_rows o"
	text    = "SELECT 'FROM activations' FROM mail_agents -- FROM turns"
)

func f(t string) []string {
	return []string{
		"DELETE FROM sessions WHERE key = ?",
		"INSERT INTO store_meta (head) SELECT uid FROM mail_messages",
		"UPDATE OR REPLACE archive_commits SET head = NULL",
		"SELECT 1 WHERE ?1 IN memory_entries AND EXISTS (SELECT 1 FROM records_fts_docsize)",
		"SELECT count(*) FROM " + t + strings.Join([]string{"", "JOIN mail_agents JOIN turns"}, " "),
		"record_ticks",
		fmt.Sprint(t == "DELETE FROM memories"),
	}
}
`
	known := knownTables(t)
	files, all := parseAll(t, map[string]any{"x.go": source})
	var got []string
	for _, u := range usesIn(files, all, known) {
		if broken := crossing("internal/mail", u, known); broken != "" {
			got = append(got, broken)
		}
	}
	want := []string{
		"x.go:5: internal/mail reads records, which belongs to internal/record",
		"x.go:7: internal/mail reads observation_rows, which belongs to internal/observation",
		"x.go:13: internal/mail writes sessions, which belongs to internal/project",
		"x.go:14: internal/mail writes store_meta, which belongs to internal/store",
		"x.go:15: internal/mail writes archive_commits, which belongs to internal/archive",
		"x.go:16: internal/mail reads memory_entries, which belongs to internal/memory/contents",
		"x.go:16: internal/mail reads records_fts_docsize, which belongs to internal/record",
		"x.go:17: internal/mail reads turns, which belongs to internal/observation",
		"x.go:18: internal/mail writes record_ticks, which belongs to internal/record",
		"x.go:19: internal/mail writes memories, which belongs to internal/memory",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestPackagesOfMailReadEachOthersTablesAndWriteTheirOwn checks the limits of the exception
// for mail.
func TestPackagesOfMailReadEachOthersTablesAndWriteTheirOwn(t *testing.T) {
	t.Parallel()
	known := knownTables(t)
	for _, c := range []struct {
		dir string
		use use
		bad bool
	}{
		{"internal/mail/messages", use{"x.go:1", "mail_agents", false}, false},
		{"internal/mail/messages", use{"x.go:1", "mail_agents", true}, true},
		{"internal/mail", use{"x.go:1", "mail_notices", true}, true},
		{"internal/mail/documents", use{"x.go:1", "mail_notices", true}, false},
		{"internal/mail/documents", use{"x.go:1", "records", false}, true},
		{"internal/mailbox", use{"x.go:1", "mail_agents", false}, true},
	} {
		if broken := crossing(c.dir, c.use, known); (broken != "") != c.bad {
			t.Errorf("%s, %+v: %q", c.dir, c.use, broken)
		}
	}
}

var created = regexp.MustCompile(`^CREATE (?:UNIQUE |VIRTUAL )?(TABLE|VIEW|INDEX|TRIGGER) (\w+)(?:[^(]*? ON (\w+))?`)

// TestTheSchemaKeepsToTheTableOfOwners checks that every table has an owner. Keys, views
// and triggers may use another owner's table only to read it, and only if all packages may
// read it.
func TestTheSchemaKeepsToTheTableOfOwners(t *testing.T) {
	t.Parallel()
	known := knownTables(t)
	text, err := os.ReadFile("internal/store/testdata/schema.golden")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, statement := range strings.Split(string(text), "\n\n") {
		found := created.FindStringSubmatch(statement)
		if found == nil || found[2] == "sqlite_sequence" {
			continue
		}
		table := found[2]
		if found[1] == "INDEX" || found[1] == "TRIGGER" {
			table = found[3]
		} else {
			seen[table] = true
		}
		of, ok := ownerOf(table, known)
		if !ok {
			t.Errorf("ARCHITECTURE.md names no owner of %s (%s)", table, found[0])
		}
		uses := namedTables(statement, known)
		for _, name := range slices.Sorted(maps.Keys(uses)) {
			if broken := crossing(of.owner, use{found[2], name, uses[name] && name != table}, known); broken != "" {
				t.Error(broken)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !seen[name] {
			t.Errorf("the schema has no %s", name)
		}
	}
}

// sourceFiles returns the non-test files of the product, by package.
func sourceFiles(t *testing.T) map[string]map[string]any {
	t.Helper()
	found := map[string]map[string]any{}
	for _, file := range productFiles(t) {
		dir := path.Dir(file)
		if found[dir] == nil {
			found[dir] = map[string]any{}
		}
		found[dir][file] = nil // read from the disk
	}
	return found
}
