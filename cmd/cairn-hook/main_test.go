package main_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestTheHookLinksNeitherServerNorCommands, which every hook would pay for at its start.
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
			"cairn/internal/mcp", "cairn/internal/web", "cairn/internal/httpapi", "cairn/internal/cli", "cairn/internal/hub",
		} {
			if strings.HasPrefix(p, heavy) {
				t.Errorf("the hook links %s", p)
			}
		}
	}
}
