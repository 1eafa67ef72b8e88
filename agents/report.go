package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Status is the outcome of a check.
type Status string

// The statuses.
const (
	Pass Status = "PASS"
	Fail Status = "FAIL"
	Info Status = "INFO"
)

// Line is the result of one check.
type Line struct {
	Cairn   string `json:"cairn"` // "new", or "base" for the binary of BASE=
	Program string `json:"program"`
	Check   string `json:"check"`
	Status  Status `json:"status"`
	Detail  string `json:"detail"`
}

// report collects lines and prints each as soon as it is added.
type report struct {
	lines    []Line
	progress io.Writer
}

func (r *report) add(l Line) {
	l.Detail = shorten(l.Detail)
	r.lines = append(r.lines, l)
	fmt.Fprintf(r.progress, "%-4s %-13s %-4s %-32s %s\n", l.Cairn, l.Program, l.Status, l.Check, l.Detail)
}

// fails counts the failed checks of the cairn under test, without those of the base.
func (r *report) fails() int {
	n := 0
	for _, l := range r.lines {
		if l.Status == Fail && l.Cairn == "new" {
			n++
		}
	}
	return n
}

// writeJSON writes all lines as a JSON array.
func (r *report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r.lines)
}

// writeTable writes a Markdown table for one cairn: a row per check, a column per program.
// INFO lines follow as a list.
func (r *report) writeTable(w io.Writer, cairn string) {
	var checks, programs []string
	cell := map[[2]string]Status{}
	for _, l := range r.lines {
		if l.Cairn != cairn {
			continue
		}
		programs = appendNew(programs, l.Program)
		checks = appendNew(checks, l.Check)
		cell[[2]string{l.Check, l.Program}] = l.Status
	}
	fmt.Fprintf(w, "\n| check (%s) | %s |\n|---|%s\n", cairn, strings.Join(programs, " | "), strings.Repeat("---|", len(programs)))
	for _, check := range checks {
		fmt.Fprintf(w, "| %s |", check)
		for _, program := range programs {
			fmt.Fprintf(w, " %s |", strings.ToLower(string(cell[[2]string{check, program}])))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	for _, status := range []Status{Fail, Info} {
		for _, l := range r.lines {
			if l.Cairn == cairn && l.Status == status {
				fmt.Fprintf(w, "- %s %s, %s: %s\n", l.Status, l.Program, l.Check, l.Detail)
			}
		}
	}
}

func appendNew(list []string, s string) []string {
	for _, known := range list {
		if known == s {
			return list
		}
	}
	return append(list, s)
}

const maxDetail = 360 // in bytes

// shorten returns a text as one line of limited length.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxDetail {
		return s
	}
	s = s[:maxDetail]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
