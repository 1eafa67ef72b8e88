package command

import "os"

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Mode()&os.ModeDevice != 0
}

// Marks returns the texts before and after a matching word: bold in a terminal with
// colours (no-color.org), else "".
func (p *Process) Marks() (on, off string) {
	if !p.PrintsToTerminal() || p.Getenv("NO_COLOR") != "" || p.Getenv("TERM") == "dumb" {
		return "", ""
	}
	return "\x1b[1m", "\x1b[0m"
}

// PrintsToTerminal reports whether standard output is a terminal.
func (p *Process) PrintsToTerminal() bool {
	out, wrapped := p.Out.(*Output)
	if !wrapped {
		return false
	}
	f, ok := out.WriteCloser.(*os.File)
	return ok && IsTerminal(f)
}
