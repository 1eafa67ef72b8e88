package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twoTalks is a file in LoCoMo's format, written for this test.
const twoTalks = `[
{"sample_id":"one","conversation":{"speaker_a":"Ann","speaker_b":"Ben",
 "session_1_date_time":"1:05 pm on 2 May, 2023","session_1":[
  {"speaker":"Ann","dia_id":"D1:1","text":"I bought a canoe."},
  {"speaker":"Ben","dia_id":"D1:2","text":"Nice!","blip_caption":"a photo of a lake"}],
 "session_3_date_time":"9:30 am on 3 June, 2023","session_3":[{"speaker":"Ben","dia_id":"D3:1","text":"My violin broke."}]},
 "qa":[{"question":"What did Ann buy?","category":4,"evidence":["D1:1"]},
  {"question":"Who saw a lake, and whose violin broke?","category":1,"evidence":["D1:2; D3:1","D9:9"]},
  {"question":"Without evidence","category":5,"evidence":["D7:1"]}]},
{"sample_id":"two","conversation":{"session_1_date_time":"1:05 pm on 2 May, 2023","session_1":[
  {"speaker":"Cid","dia_id":"D1:1","text":"Nothing here."}]},
 "qa":[{"question":"zebra","category":3,"evidence":["D1:1"]}]}
]`

func TestLocomoTellsHowMuchOfTheEvidenceIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, figures := filepath.Join(dir, "talks.json"), filepath.Join(dir, "figures.json")
	if err := os.WriteFile(file, []byte(twoTalks), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, progress strings.Builder
	if err := run(t.Context(), []string{"locomo", "--json", figures, file}, &out, &progress); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if fields := strings.Fields(line); len(fields) > 5 {
			lines[strings.Join(fields[:2], " ")] = strings.Join(fields, " ")
		}
	}
	for head, want := range map[string]string{
		"all questions": "all questions 3 66.7 66.7 66.7 66.7 66.7 66.7 66.7 66.7",
		"category 1":    "category 1 1 100 100 100 100 100 100 100 100",
		"category 3":    "category 3 1 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00",
		"one 2":         "one 2 100 100 100 100 100 100 100 100",
		"mean of":       "mean of conversations 3 50.0 50.0 50.0 50.0 50.0 50.0 50.0 50.0 NOT MET: R@5 at least 70, R@10 at least 78",
	} {
		if lines[head] != want {
			t.Errorf("%q, want %q", lines[head], want)
		}
	}
	if text, err := os.ReadFile(figures); err != nil || !strings.Contains(string(text), "p95 ms") {
		t.Errorf("figures: %v %s", err, text)
	}
	if !strings.Contains(progress.String(), "asking two") {
		t.Errorf("progress: %s", progress.String())
	}
}

func TestLocomoSaysWhatIsWrongWithItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, args := range map[string][]string{
		"locomo takes the file":         {},
		"cannot be read":                {filepath.Join(dir, "none")},
		"is not a file":                 {write("bad", "{")},
		"holds no conversation":         {write("empty", "[]")},
		"no question has evidence":      {write("bare", `[{"sample_id":"x","conversation":{},"qa":[]}]`)},
		"flag provided but not defined": {"--no-such"},
	} {
		var out strings.Builder
		err := run(t.Context(), append([]string{"locomo"}, args...), &out, &out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
