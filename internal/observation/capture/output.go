package capture

import (
	"strings"

	"cairn/internal/observation"
)

// printedBy returns the output of a call, not redacted. It returns "" for calls that read or
// write files, because whole file contents are not stored (amendments §A.6).
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

// keepOutputs creates the outputs of rows from what their calls printed, as the settings
// require. It needs no transaction.
func keepOutputs(svc *observation.Service, rows []draft) {
	for i := range rows {
		d := &rows[i]
		if svc.Config.Output != observation.OutputOff && (d.Failed || svc.Config.Output != observation.OutputErrors) {
			d.output = observation.NewOutput(d.printed, svc.Config.Filter)
		}
		d.printed = ""
	}
}
