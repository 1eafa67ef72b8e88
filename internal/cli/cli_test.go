package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"cairn/internal/cli/command"
)

type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// A defect must not become Go's own exit code 2 and a page of goroutines, least of
// all in a hook, where 2 takes back what the user typed.
func TestADefectIsOneLineAndNoVetoInAHook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"record"}, 1},
		{[]string{"status"}, 2},
	} {
		var said bytes.Buffer
		code := Run(command.Process{
			Args: c.args, In: os.Stdin, Out: nowhere{io.Discard}, Err: &said,
			Getenv: func(string) string { panic("what a payload says") },
		})
		if line := said.String(); code != c.code || !strings.HasPrefix(line, "cairn: defect: a string at cli_test.go:") ||
			strings.Count(line, "\n") != 1 || strings.Contains(line, "payload") {
			t.Errorf("%v: exit %d, %q", c.args, code, line)
		}
	}
}
