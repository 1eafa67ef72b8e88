package cairn_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestTheVulnerabilityCheckFailsUnlessTheDatabaseCannotBeReached runs .ci/vulnerabilities
// with tools that end in different ways.
func TestTheVulnerabilityCheckFailsUnlessTheDatabaseCannotBeReached(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs bash")
	}
	const fetching = "govulncheck: fetching vulnerabilities: Get \"https://db.invalid/index/modules.json.gz\": "
	for name, c := range map[string]struct {
		prints string
		code   string
		fails  bool
		says   string
	}{
		"nothing found":           {"No vulnerabilities found.", "0", false, "No vulnerabilities found."},
		"a vulnerability":         {"Vulnerability #1: GO-2026-0001", "3", true, "GO-2026-0001"},
		"no such host":            {fetching + "dial tcp: lookup db.invalid on [::1]:53: no such host", "1", false, "cannot be reached: skipped"},
		"refused":                 {fetching + "dial tcp 127.0.0.1:443: connect: connection refused", "1", false, "cannot be reached: skipped"},
		"a broken database":       {fetching + "unexpected end of JSON input", "1", true, "unexpected end of JSON input"},
		"code that cannot load":   {"govulncheck: loading packages: main.go:1:1: expected 'package'", "1", true, "expected 'package'"},
		"network words elsewhere": {"govulncheck: loading packages: dial tcp: no such host", "1", true, "exit code 1"},
		"a crash":                 {"panic: runtime error", "2", true, "exit code 2"},
		"found, then cut off":     {"Vulnerability #1: GO-2026-0001\n" + fetching + "i/o timeout", "1", true, "GO-2026-0001"},
		"a tool that is missing":  {"", "127", true, "exit code 127"},
		"no words":                {"", "1", true, "exit code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := filepath.Join(t.TempDir(), "tool")
			if err := os.WriteFile(tool, []byte("cat <<'END'\n"+c.prints+"\nEND\nexit "+c.code+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(filepath.Join(".ci", "vulnerabilities"))
			cmd.Env = append(cmd.Environ(), "GOVULNCHECK=sh "+tool)
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
