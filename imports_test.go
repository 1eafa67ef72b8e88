package cairn_test

import (
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is what a room may import besides the standard library: rooms of ours,
// and modules of others. It is the import table of ARCHITECTURE.md. A module of
// others belongs to one room, those of the Go project itself (golang.org/x) aside.
type room struct{ ours, others []string }

func importTable() map[string]room {
	return map[string]room{
		"internal/fault":        {},
		"internal/crashpoint":   {},
		"internal/regular":      {},
		"internal/failure":      {},
		"internal/neutral":      {},
		"internal/sqlitefile":   {},
		"internal/store":        {ours: []string{"internal/fault", "internal/regular", "internal/crashpoint", "internal/sqlitefile", "internal/store/cipher"}, others: []string{"github.com/mattn/go-sqlite3", "modernc.org/sqlite", "github.com/gofrs/flock", "github.com/oklog/ulid/v2"}},
		"internal/store/cipher": {others: []string{"github.com/ncruces/go-sqlite3", "lukechampine.com/adiantum", "golang.org/x/sys"}},
		"internal/project":      {ours: []string{"internal/fault", "internal/regular", "internal/store"}, others: []string{"golang.org/x/sys", "golang.org/x/text"}},
		"internal/citation":     {},
		"internal/gitread":      {ours: []string{"internal/fault", "internal/regular"}},
		"internal/githook":      {ours: []string{"internal/fault", "internal/regular"}},
		"internal/redact":       {ours: []string{"internal/fault"}},
		"internal/observation": {
			ours: []string{"internal/fault", "internal/failure", "internal/neutral", "internal/store", "internal/project", "internal/redact", "internal/words"},
		},
		"internal/words":       {ours: []string{"internal/fault"}, others: []string{"golang.org/x/text"}},
		"internal/pathpattern": {ours: []string{"internal/fault"}, others: []string{"golang.org/x/text"}},
		"internal/linediff":    {others: []string{"github.com/aymanbagabas/go-udiff"}},
		"internal/record": {
			ours: []string{"internal/fault", "internal/store", "internal/project", "internal/redact", "internal/words", "internal/linediff"},
		},
		"internal/mail":     {ours: []string{"internal/fault", "internal/neutral", "internal/store", "internal/project", "internal/redact", "internal/words", "internal/pathpattern"}},
		"internal/memory":   {ours: []string{"internal/fault", "internal/regular", "internal/crashpoint", "internal/store", "internal/project", "internal/redact", "internal/words"}},
		"internal/replica":  {ours: []string{"internal/fault", "internal/crashpoint", "internal/store", "internal/memory"}},
		"internal/hub":      {ours: []string{"internal/fault", "internal/crashpoint", "internal/store", "internal/memory", "internal/replica"}, others: []string{"github.com/jackc/pgx/v5"}},
		"internal/exchange": {ours: []string{"internal/fault"}},
		"internal/archive":  {ours: []string{"internal/fault", "internal/store"}},
		"internal/harness": {
			ours:   []string{"internal/fault", "internal/regular", "internal/observation", "internal/sqlitefile"},
			others: []string{"github.com/go-json-experiment/json"},
		},
		"internal/tomlfile": {ours: []string{"internal/fault", "internal/regular"}, others: []string{"github.com/pelletier/go-toml/v2"}},
		"internal/wiring": {
			ours:   []string{"internal/fault", "internal/regular", "internal/tomlfile", "internal/linediff", "internal/harness"},
			others: []string{"github.com/tailscale/hujson", "github.com/google/renameio/v2"},
		},
		".": {
			ours: []string{
				"internal/fault", "internal/regular", "internal/store", "internal/project", "internal/redact", "internal/observation", "internal/record", "internal/mail", "internal/memory", "internal/replica", "internal/harness",
				"internal/archive", "internal/tomlfile", "internal/wiring", "internal/gitread", "internal/githook", "internal/why", "internal/citation", "internal/recall", "internal/guard", "internal/copies", "internal/repair", "internal/followers", "internal/doctor",
			},
			others: []string{"github.com/bmatcuk/doublestar/v4"},
		},
		"internal/repair":    {ours: []string{"internal/fault", "internal/store", "internal/project", "internal/observation", "internal/record", "internal/mail", "internal/memory", "internal/archive"}},
		"internal/followers": {ours: []string{"internal/fault", "internal/store", "internal/memory", "internal/archive"}},
		"internal/doctor": {
			ours: []string{
				"internal/fault", "internal/regular", "internal/store", "internal/project", "internal/observation", "internal/mail", "internal/memory", "internal/replica", "internal/harness", "internal/tomlfile", "internal/wiring", "internal/gitread", "internal/githook", "internal/followers", "internal/repair",
			},
		},
		"internal/copies": {
			ours: []string{
				"internal/fault", "internal/regular", "internal/store", "internal/project", "internal/redact", "internal/observation", "internal/record", "internal/mail", "internal/memory", "internal/archive", "internal/exchange", "internal/repair",
			},
		},
		"internal/guard": {ours: []string{"internal/fault", "internal/store", "internal/project", "internal/mail", "internal/gitread", "internal/githook"}},
		"internal/recall": {
			ours: []string{"internal/fault", "internal/neutral", "internal/project", "internal/words", "internal/observation", "internal/record", "internal/mail", "internal/memory"},
		},
		"internal/why": {
			ours: []string{"internal/fault", "internal/store", "internal/project", "internal/redact", "internal/observation", "internal/record", "internal/citation", "internal/gitread"},
		},
		"internal/mcp": {
			ours:   []string{".", "internal/fault", "internal/project", "internal/observation", "internal/record", "internal/mail", "internal/memory", "internal/words", "internal/recall", "internal/why", "internal/guard"},
			others: []string{"github.com/modelcontextprotocol/go-sdk", "github.com/google/jsonschema-go"},
		},
		"internal/markdown":  {},
		"internal/web":       {ours: []string{".", "internal/fault", "internal/project", "internal/mail", "internal/markdown"}},
		"internal/httpapi":   {ours: []string{".", "internal/fault", "internal/regular", "internal/crashpoint", "internal/mcp", "internal/memory", "internal/replica", "internal/web"}},
		"internal/testhooks": {ours: []string{".", "internal/fault", "internal/crashpoint", "internal/store", "internal/memory", "internal/hub", "internal/httpapi"}},
		"internal/cli": {
			ours:   []string{".", "internal/fault", "internal/store", "internal/project", "internal/observation", "internal/record", "internal/mail", "internal/memory", "internal/harness", "internal/archive", "internal/mcp", "internal/httpapi", "internal/web", "internal/wiring", "internal/githook", "internal/hub", "internal/replica", "internal/testhooks", "internal/recall", "internal/why", "internal/guard", "internal/copies", "internal/followers", "internal/doctor"},
			others: []string{"github.com/spf13/cobra", "golang.org/x/sync"},
		},
		"cmd/cairn": {ours: []string{"internal/cli"}},
	}
}

// Programs and rooms that are no part of the product: they may import anything.
func isTool(dir string) bool {
	return strings.HasPrefix(dir, "cmd/cairn-") || strings.HasSuffix(dir, "test") || strings.HasPrefix(dir, "internal/redact/oracle") ||
		strings.HasPrefix(dir, "internal/mcp/conformance") || dir == "agents" || strings.HasPrefix(dir, "agents/") || strings.HasPrefix(dir, "internal/web/browser")
}

func TestEveryImportIsInTheTable(t *testing.T) {
	t.Parallel()
	table := importTable()
	owner := map[string]string{} // module of others -> the room that imports it
	eachFile(t, func(dir string, imports []string) {
		if isTool(dir) {
			return
		}
		r, ok := table[dir]
		if !ok {
			t.Errorf("%s is not in the import table", dir)
			return
		}
		for _, path := range imports {
			if ours, ok := strings.CutPrefix(path+"/", "cairn/"); ok {
				name := strings.TrimSuffix(ours, "/")
				if name == "" {
					name = "."
				}
				if !slices.Contains(r.ours, name) {
					t.Errorf("%s imports %s, which the table does not allow", dir, path)
				}
				continue
			}
			module := moduleOf(r.others, path)
			if module == "" {
				t.Errorf("%s imports %s, which the table does not allow", dir, path)
			} else if first := owner[module]; first != "" && first != dir && !strings.HasPrefix(module, "golang.org/x/") {
				t.Errorf("%s is imported by %s and %s; it belongs to one room", module, first, dir)
			}
			owner[module] = dir
		}
	})
	for _, dir := range slices.Sorted(maps.Keys(table)) {
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

// eachFile calls seen with the third-party and own imports of every file outside
// tests, on whatever system it builds.
func eachFile(t *testing.T, seen func(dir string, imports []string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if !isStandard(p) {
				imports = append(imports, p)
			}
		}
		seen(filepath.ToSlash(filepath.Dir(path)), imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isStandard(path string) bool {
	if path == "cairn" || strings.HasPrefix(path, "cairn/") {
		return false
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") || build.IsLocalImport(path)
}
