package capture

import (
	"strings"

	"cairn/internal/observation"
)

// printedBy returns what a call printed, as it came, and "" for a call that reads or
// writes files: whole file bodies are not kept (amendments §A.6).
func printedBy(c *observation.Call) string {
	switch c.Action {
	case observation.Read, observation.Write, observation.Edit, observation.Search, observation.Skill:
		return ""
	case observation.Shell:
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
func keepOutputs(svc *observation.Service, rows []draft) {
	for i := range rows {
		d := &rows[i]
		if svc.Config.Output != observation.OutputOff && (d.Failed || svc.Config.Output != observation.OutputErrors) {
			d.output = observation.NewOutput(d.printed, svc.Config.Filter)
		}
		d.printed = ""
	}
}
