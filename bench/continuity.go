package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"cairn/bench/continuity"
)

// The contract's baseline: the composite's recall@20 in percent, at session starts in the
// corpus from 8 January on.
const (
	baselineNamer   = "composite top 20"
	baselineEdited  = 34
	baselineTouched = 33
)

// measureContinuity runs the command continuity.
func measureContinuity(ctx context.Context, args []string, out, progress io.Writer) error {
	var o continuity.Options
	var file string
	f := flag.NewFlagSet("cairn-bench continuity", flag.ContinueOnError)
	f.SetOutput(progress)
	f.StringVar(&file, "json", "", "also write figures and sessions to this `file`")
	f.Func("from", "ask only sessions that start on this `day` (YYYY-MM-DD, UTC) or later; those before are stored all the same", dayInto(&o.From))
	f.Func("until", "ask only sessions that start before this `day`", dayInto(&o.Until))
	f.BoolVar(&o.Machines, "machines", false, "give every home folder of the transcripts a store of its own, as on its owner's machine; else all share one")
	f.StringVar(&o.Dump, "dump", "", "write the events, reduced and redacted, to this `file` as JSON lines and measure nothing")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New("continuity takes the folder of the transcripts")
	}
	o.Dir = f.Arg(0)
	began := time.Now()
	r, err := continuity.Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s events, %s copies left out, %s sessions asked in %.1f s\n",
		grouped(r.Events), grouped(r.Copies), grouped(len(r.Sessions)), time.Since(began).Seconds())
	if err := printFigures(out, r.Figures); err != nil {
		return err
	}
	if err := printSections(out, r.Sections); err != nil || file == "" {
		return err
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

func dayInto(t *time.Time) func(string) error {
	return func(text string) (err error) {
		*t, err = time.Parse(time.DateOnly, text)
		return err
	}
}

// printFigures prints a table for each period and moment.
func printFigures(out io.Writer, figures []continuity.Figure) error {
	var t *table
	for i, f := range figures {
		title := fmt.Sprintf("%s, at the %s", f.Period, f.When)
		if f.WithoutFirst {
			title += ", without sessions that find nothing of their project"
		}
		if i == 0 || !f.SameTable(figures[i-1]) {
			t = newTable("continuity", fmt.Sprintf("%s: %d sessions edit files, %d touch files; %%, the mean of sessions, first %d files",
				title, f.Edited.Sessions, f.Touched.Sessions, continuity.Top),
				"edited: hit", "recall", "of known", "precision", "touched: hit", "recall", "of known", "precision", "tokens", "median", "p90", "max")
		}
		row := t.add(f.Namer)
		for _, s := range []continuity.Score{f.Edited, f.Touched} {
			row.Cells = append(row.Cells, percent(s.Hit), percent(s.Recall), percent(s.KnownRecall), precision(f, s))
		}
		if f.TokensMax > 0 {
			row.Cells = append(row.Cells, int(f.TokensMean+0.5), f.TokensMedian, f.TokensP90, f.TokensMax)
		}
		if f.Baseline() && f.Namer == baselineNamer {
			t.note("the contract's baseline for %s: recall of edited files %d, of touched files %d; here %s and %s",
				f.Namer, baselineEdited, baselineTouched, percent(f.Edited.Recall), percent(f.Touched.Recall))
		}
		if i+1 == len(figures) || !f.SameTable(figures[i+1]) {
			if err := t.print(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// printSections prints the cost of the injected text's sections for each period and moment. It
// adds how many of the named files the sessions touched.
func printSections(out io.Writer, figures []continuity.SectionFigure) error {
	var t *table
	for i, f := range figures {
		if i == 0 || f.Period != figures[i-1].Period || f.When != figures[i-1].When {
			t = newTable("continuity", fmt.Sprintf("%s, at the %s: sections of the injected text", f.Period, f.When), "texts", "tokens", "files", "precision %")
		}
		row := t.add(f.Name, f.Shown, int(f.Tokens+0.5), fmt.Sprintf("%.1f", f.Files))
		if f.Files > 0 {
			row.Cells = append(row.Cells, percent(f.Precision))
		}
		if i+1 == len(figures) || f.Period != figures[i+1].Period || f.When != figures[i+1].When {
			if err := t.print(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// precision returns the precision, or nothing for the ceiling, which names only hits.
func precision(f continuity.Figure, s continuity.Score) any {
	if f.Namer == continuity.Ceiling {
		return nil
	}
	return percent(s.Precision)
}

func percent(share float64) string { return fmt.Sprintf("%.1f", 100*share) }
