package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// report contains all measurements of a run.
type report struct {
	Machine machine  `json:"machine"`
	Tables  []*table `json:"tables"`
}

// table is the result of one experiment.
type table struct {
	Experiment string   `json:"experiment"`
	Title      string   `json:"title"`
	Columns    []string `json:"columns"` // column names, with the units of the cells
	Rows       []*row   `json:"rows"`
	Notes      []string `json:"notes"`
}

// row is one line of a table.
type row struct {
	Name   string `json:"name"`
	Cells  []any  `json:"cells"` // by column: numbers, texts, or null if not applicable
	Target string `json:"target,omitempty"`
	Met    *bool  `json:"met,omitempty"` // whether the target is met
}

// milliseconds returns a duration in the unit of cells.
func milliseconds(t time.Duration) float64 { return float64(t) / float64(time.Millisecond) }

func newTable(experiment, title string, columns ...string) *table {
	return &table{Experiment: experiment, Title: title, Columns: columns}
}

// add appends a line. Durations become milliseconds; a nil cell stays empty.
func (t *table) add(name string, cells ...any) *row {
	for i, c := range cells {
		if d, ok := c.(time.Duration); ok {
			cells[i] = milliseconds(d)
		}
	}
	r := &row{Name: name, Cells: cells}
	t.Rows = append(t.Rows, r)
	return r
}

func (t *table) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// target sets the contract's target of the row, and whether it is met.
func (r *row) target(text string, met bool) { r.Target, r.Met = text, &met }

// print writes the table in human-readable form.
func (t *table) print(w io.Writer) error {
	lines := [][]string{append([]string{""}, t.Columns...)}
	for _, r := range t.Rows {
		line := []string{r.Name}
		for _, c := range r.Cells {
			line = append(line, cellText(c))
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(t.Columns)+1)
	for _, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %s\n", t.Experiment, t.Title)
	for n, line := range lines {
		text := ""
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				text += "  " + cell + pad
			} else {
				text += "  " + pad + cell
			}
		}
		if n > 0 {
			text += t.Rows[n-1].verdict()
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	for _, note := range t.Notes {
		b.WriteString("  " + note + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// verdict returns the row's target and whether it is met.
func (r *row) verdict() string {
	switch {
	case r.Met == nil:
		return ""
	case *r.Met:
		return "  met: " + r.Target
	default:
		return "  NOT MET: " + r.Target
	}
}

func cellText(c any) string {
	switch c := c.(type) {
	case nil:
		return ""
	case string:
		return c
	case int:
		return grouped(c)
	case float64:
		switch {
		case c >= 1000:
			return grouped(int(c + 0.5))
		case c >= 100:
			return strconv.FormatFloat(c, 'f', 0, 64)
		case c >= 10:
			return strconv.FormatFloat(c, 'f', 1, 64)
		}
		return strconv.FormatFloat(c, 'f', 2, 64)
	default:
		return fmt.Sprint(c)
	}
}

// grouped formats a number with thousands separators.
func grouped(n int) string {
	if n < 0 {
		return "-" + grouped(-n)
	}
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return grouped(n/1000) + "," + fmt.Sprintf("%03d", n%1000)
}

// save writes the report as JSON.
func (r *report) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
