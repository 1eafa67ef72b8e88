package command

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"cairn/internal/fault"
	"cairn/internal/record"
)

// ParseDate parses YYYY-MM-DD as local midnight, or Unix seconds. It returns the zero
// time for "".
func ParseDate(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Unix(n, 0), nil
	}
	t, err := time.ParseInLocation(time.DateOnly, s, time.Local)
	if err != nil {
		return t, fault.Newf(fault.Invalid, "usage", "%q is neither YYYY-MM-DD nor a Unix second", s)
	}
	return t, nil
}

// Counted returns a number with its noun: 1 project, 5,900 observations.
func Counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + what
}

// Indented returns a text to print below its header line; "" for nil. The indentation
// keeps its lines from looking like output of cairn.
func Indented(body *string) string {
	if body == nil || *body == "" {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(Block(*body)) {
		if line != "\n" {
			line = "    " + line
		}
		out.WriteString(line)
	}
	return out.String()
}

// Row returns a line of a table; tabs separate its cells.
func Row(format string, values ...any) []string {
	return strings.Split(fmt.Sprintf(format, values...), "\t")
}

// Rows prints a table without trailing spaces.
func Rows(w io.Writer, lines [][]string) error {
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 4, 2, ' ', 0)
	for _, cells := range lines {
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// FirstOf returns the beginning of a text, safe for a terminal.
func FirstOf(text string, most int) string {
	runes := []rune(Printable(strings.Join(strings.Fields(text), " ")))
	if len(runes) > most {
		runes = append(runes[:most-1], '…')
	}
	return string(runes)
}

// OneLine returns a text as one line, safe for a terminal.
func OneLine(s string) string { return Printable(strings.Join(strings.Fields(s), " ")) }

// Block returns a text of several lines, safe for a terminal. It ends with a newline
// unless it is empty.
func Block(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		out.WriteString(Printable(strings.ReplaceAll(line, "\t", "    ")) + "\n")
	}
	return out.String()
}

// FormatSecond formats Unix seconds in UTC, with minutes.
func FormatSecond(at int64) string { return FormatMinute(record.Time(at * 1e9)) }

// FormatMinute formats a time in UTC, with minutes.
func FormatMinute(t record.Time) string {
	return time.Unix(0, int64(t)).UTC().Format("2006-01-02 15:04")
}
