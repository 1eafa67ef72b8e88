package observation

import (
	"strings"
)

// printedBy returns what a call printed, as it came, and "" for a call that reads or
// writes files: whole file bodies are not kept (amendments §A.6).
func printedBy(c *Call) string {
	switch c.Action {
	case Read, Write, Edit, Search, Skill:
		return ""
	case Shell:
		switch {
		case strings.TrimSpace(c.Stderr) == "" || c.Stderr == c.Stdout:
			return firstText(c.Stdout, firstText(c.Error, c.Output))
		case strings.TrimSpace(c.Stdout) == "":
			return c.Stderr
		}
		return strings.TrimRight(c.Stdout, "\n") + "\n" + c.Stderr
	}
	return firstText(c.Output, c.Error)
}

// keepOutputs makes the outputs of rows out of what their calls printed, as far as the
// settings keep them. It needs no transaction.
func (j *Service) keepOutputs(rows []draft) {
	for i := range rows {
		d := &rows[i]
		if j.config.Output != OutputOff && (d.Failed || j.config.Output != OutputErrors) {
			d.output = newOutput(d.printed, j.config.Filter)
		}
		d.printed = ""
	}
}
