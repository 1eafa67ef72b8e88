package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/redact"
)

// redactions lists the changes of the current rules in the strings of transcripts.
type redactions struct {
	filter  *redact.Filter
	seen    map[string]bool
	strings int // number of distinct strings
	bytes   int64
	changed []redaction
	rules   map[string]int
}

// redaction is one changed string.
type redaction struct {
	file    string
	rules   []string
	excerpt string // first difference, redacted
	length  int
}

// measureRedaction runs the command redaction. It redacts every distinct string in the JSON of
// a folder of transcripts and lists the changes. In a corpus whose secrets were already
// replaced, check each change: it is a false redaction or an overlooked secret.
func measureRedaction(ctx context.Context, args []string, out, progress io.Writer) error {
	f := flag.NewFlagSet("cairn-bench redaction", flag.ContinueOnError)
	f.SetOutput(progress)
	level := f.String("level", "standard", "the filter's `level`: relaxed, standard or strict")
	shown := f.Int("show", 200, "list at most so many changed strings")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New("redaction takes the folder of the transcripts")
	}
	filter, err := redact.New(redact.Options{Level: redact.Level(*level)})
	if err != nil {
		return err
	}
	r := &redactions{filter: filter, seen: map[string]bool{}, rules: map[string]int{}}
	err = filepath.WalkDir(f.Arg(0), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return errors.Join(err, ctx.Err())
		}
		return r.file(path)
	})
	if err != nil {
		return err
	}
	return r.print(out, *shown)
}

func (r *redactions) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var v any
		if json.Unmarshal(lines.Bytes(), &v) == nil {
			r.value(filepath.Base(path), v)
		}
	}
	return lines.Err()
}

func (r *redactions) value(file string, v any) {
	switch v := v.(type) {
	case string:
		r.text(file, v)
	case []any:
		for _, e := range v {
			r.value(file, e)
		}
	case map[string]any:
		for name, e := range v {
			if name == "signature" || name == "data" && v["media_type"] != nil {
				continue // random by nature and never stored: signatures of thoughts, and pictures
			}
			r.text(file, name)
			r.value(file, e)
		}
	}
}

func (r *redactions) text(file, s string) {
	if r.seen[s] {
		return
	}
	r.seen[s] = true
	r.strings++
	r.bytes += int64(len(s))
	redacted, changed := r.filter.Text(s)
	if !changed {
		return
	}
	counts := r.filter.Counts(s)
	for rule, n := range counts {
		r.rules[rule] += n
	}
	r.changed = append(r.changed, redaction{file, slices.Sorted(maps.Keys(counts)), firstDifference(s, redacted), len(s)})
}

// firstDifference returns a part of the redacted text around its first difference from the
// original.
func firstDifference(before, after string) string {
	const around = 60
	at := 0
	for at < len(before) && at < len(after) && before[at] == after[at] {
		at++
	}
	from, to := max(0, at-around), min(len(after), at+around)
	for from > 0 && !utf8.RuneStart(after[from]) {
		from--
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(after[from:to], "")), " ")
}

func (r *redactions) print(out io.Writer, shown int) error {
	fmt.Fprintf(out, "%s distinct strings, %.1f MB; %s changed\n",
		grouped(r.strings), float64(r.bytes)/1e6, grouped(len(r.changed)))
	for _, rule := range slices.SortedFunc(maps.Keys(r.rules), func(a, b string) int {
		return r.rules[b] - r.rules[a]
	}) {
		fmt.Fprintf(out, "%7d  %s\n", r.rules[rule], rule)
	}
	for _, c := range r.changed[:min(len(r.changed), shown)] {
		_, err := fmt.Fprintf(out, "%s (%d bytes, %s): %s\n", c.file, c.length, strings.Join(c.rules, ", "), c.excerpt)
		if err != nil {
			return err
		}
	}
	return nil
}
