package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
)

// TestTheHookLinksNeitherServerNorCommands checks that the hook does not link them, because
// every hook would start more slowly.
func TestTheHookLinksNeitherServerNorCommands(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "cairn/internal/harness") {
		t.Fatalf("the hook links %d packages", len(linked))
	}
	for _, p := range linked {
		for _, heavy := range []string{
			"github.com/modelcontextprotocol/", "github.com/spf13/", "github.com/jackc/", "html/template", "encoding/gob",
			"net/http", "crypto/tls", "cairn/internal/mcp", "cairn/internal/web", "cairn/internal/httpapi", "cairn/internal/cli",
			"cairn/internal/hub", "cairn/internal/memory", "cairn/internal/replica",
		} {
			if strings.HasPrefix(p, heavy) {
				t.Errorf("the hook links %s", p)
			}
		}
	}
}

// TestTheHookLinksOneSQLite checks that a build with C does not link SQLite in Go, which
// would be a third of the program. Such a build does not need it, because it passes events
// of encrypted stores to cairn.
func TestTheHookLinksOneSQLite(t *testing.T) {
	t.Parallel()
	args, inC := []string{"build"}, store.Driver == "mattn/go-sqlite3"
	if inC {
		args = append(args, "-tags", "sqlite_fts5,sqlite_math_functions")
	}
	program := filepath.Join(t.TempDir(), "cairn-hook")
	if out, err := exec.CommandContext(t.Context(), "go", append(args, "-o", program, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	const runsStatements = "_sqlite3VdbeExec" // a symbol of the SQLite module in Go
	if inGo := bytes.Contains(text, []byte(runsStatements)); inGo == inC {
		t.Errorf("the driver is %s, SQLite in Go is linked: %v", store.Driver, inGo)
	}
}
