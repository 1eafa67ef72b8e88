package cairn_test

import (
	"go/build"
	"go/parser"
	"go/token"
	"iter"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room lists the imports that a package may have besides the standard library, as in the
// table of ARCHITECTURE.md: packages of cairn and third-party modules.
type room struct {
	ours, others []string
	loose        bool // ours lists more packages than it must import
}

const allBut = "all but "

// isOfPart reports whether a package is one of the four parts, or is in the directory of
// one.
func isOfPart(dir string) bool {
	switch partOf(dir) {
	case "internal/observation", "internal/record", "internal/mail", "internal/memory":
		return true
	}
	return false
}

// importTable reads the table of packages.
func importTable(t *testing.T) map[string]room {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rooms, _ := strings.Cut(string(text), "\n## Rooms\n")
	rooms, _, _ = strings.Cut(rooms, "\n## ")
	type row struct{ dir, ours, others string }
	var rows []row
	dirs := map[string]string{"cairn": "."} // by the last element of their path
	for line := range strings.Lines(rooms) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		_, name, _ := strings.Cut(cells[1], "`")
		name, _, _ = strings.Cut(name, "`")
		if name == "cairn" {
			name = "."
		} else {
			dirs[path.Base(name)] = name
		}
		rows = append(rows, row{name, strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4])})
	}
	dirs["root"] = "."
	modules := requiredModules(t)
	table := map[string]room{
		"cmd/cairn":      {ours: []string{"internal/cli", "internal/cli/command", "internal/veto"}},
		"cmd/cairn-hook": {ours: []string{"internal/hook", "internal/veto"}},
	}
	for _, r := range rows {
		out := room{loose: strings.Contains(r.ours, "parts") || strings.HasPrefix(r.ours, allBut)}
		for name := range words(strings.TrimPrefix(r.ours, allBut)) {
			switch {
			case name == "parts":
				for _, other := range rows {
					if isOfPart(other.dir) {
						out.ours = append(out.ours, other.dir)
					}
				}
			case dirs[name] == "":
				t.Errorf("%s: %s is no room", r.dir, name)
			default:
				out.ours = append(out.ours, dirs[name])
			}
		}
		if strings.HasPrefix(r.ours, allBut) {
			none := out.ours
			out.ours = nil
			for _, other := range rows {
				if !slices.Contains(none, other.dir) {
					out.ours = append(out.ours, other.dir)
				}
			}
		}
		for name := range words(r.others) {
			i := slices.IndexFunc(modules, func(m string) bool { return m == name || strings.HasSuffix(m, "/"+name) })
			if i < 0 {
				t.Errorf("%s: go.mod requires no module %s", r.dir, name)
				continue
			}
			out.others = append(out.others, modules[i])
		}
		table[r.dir] = out
	}
	return table
}

// modulesOfOneRoom returns the modules that only one package may import, as listed in
// ARCHITECTURE.md.
func modulesOfOneRoom(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), " One room each: ")
	list, _, _ = strings.Cut(list, ".\n")
	for name := range words(strings.ReplaceAll(strings.ReplaceAll(list, "`", ""), "\n", " ")) {
		i := slices.IndexFunc(requiredModules(t), func(m string) bool { return strings.HasSuffix(m, "/"+name) })
		if i < 0 {
			t.Fatalf("go.mod requires no module %s", name)
		}
		out = append(out, requiredModules(t)[i])
	}
	if len(out) == 0 {
		t.Fatal("ARCHITECTURE.md names no module that belongs to one room")
	}
	return out
}

// words returns the comma-separated names of a table cell, or none for a dash.
func words(cell string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range strings.SplitSeq(cell, ",") {
			if name = strings.TrimSpace(name); name != "–" && !yield(name) {
				return
			}
		}
	}
}

// requiredModules returns the modules that go.mod requires, without their major versions.
func requiredModules(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`/v[0-9]+$`)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.Contains(fields[0], ".") {
			out = append(out, version.ReplaceAllString(fields[0], ""))
		}
	}
	return out
}

func TestEveryImportIsInTheTable(t *testing.T) {
	t.Parallel()
	table := importTable(t)
	single := modulesOfOneRoom(t)
	owner := map[string]string{} // third-party module -> the package that imports it
	used := map[string]bool{}    // package and a package that it imports
	for _, file := range productFiles(t) {
		dir := path.Dir(file)
		r, ok := table[dir]
		if !ok {
			t.Errorf("%s is not in the import table", dir)
			continue
		}
		for _, path := range importsOf(t, file) {
			if ours, ok := strings.CutPrefix(path+"/", "cairn/"); ok {
				name := strings.TrimSuffix(ours, "/")
				if name == "" {
					name = "."
				}
				used[dir+" "+name] = true
				if !slices.Contains(r.ours, name) {
					t.Errorf("%s imports %s, which the table does not allow", dir, path)
				}
				continue
			}
			module := moduleOf(r.others, path)
			if module == "" {
				t.Errorf("%s imports %s, which the table does not allow", dir, path)
			} else if first := owner[module]; first != "" && partOf(first) != partOf(dir) && slices.Contains(single, module) {
				t.Errorf("%s is imported by %s and %s; it belongs to one room", module, first, dir)
			}
			owner[module] = dir
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(table)) {
		for _, name := range table[dir].ours {
			if !used[dir+" "+name] && !table[dir].loose {
				t.Errorf("the table lets %s import %s, which it does not", dir, name)
			}
		}
		for _, module := range table[dir].others {
			if owner[module] == "" {
				t.Errorf("the table gives %s to %s, which does not import it", module, dir)
			}
		}
	}
}

func moduleOf(modules []string, path string) string {
	for _, m := range modules {
		if path == m || strings.HasPrefix(path, m+"/") {
			return m
		}
	}
	return ""
}

// importsOf returns a file's imports of third-party modules and of cairn's packages. Build
// constraints do not matter.
func importsOf(t *testing.T, file string) (imports []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if !isStandard(p) {
			imports = append(imports, p)
		}
	}
	return imports
}

func isStandard(path string) bool {
	if path == "cairn" || strings.HasPrefix(path, "cairn/") {
		return false
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") || build.IsLocalImport(path)
}
