package main

import (
	"slices"
	"strings"
	"testing"
)

func TestInventedSessionsAnswerAsManyQuestionsAsBefore(t *testing.T) {
	t.Parallel()
	forms, err := askInvented(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	least := map[string][2]float64{ // hit@1 and hit@5
		"recall, sentence":          {0.60, 0.72},
		"recall, keywords":          {0.92, 0.98},
		"recall, both":              {0.97, 1},
		"search, sentence":          {0.58, 0.70},
		"search, keywords":          {0.90, 0.96},
		"recall, pasted line":       {0.97, 1},
		"recall, with other digits": {0.80, 0.95},
		"help on a prompt":          {0.58, 0.80},
	}
	for _, f := range forms {
		floor, known := least[f.name]
		delete(least, f.name)
		first, five := f.all.share(float64(f.all.first)), f.all.share(float64(f.all.five))
		if !known || first < floor[0] || five < floor[1] {
			t.Errorf("%s: %v of %d questions, want %.2f/%.2f", f.name, f.all, f.all.asked, floor[0], floor[1])
		}
		if f.all.empty > 0 && f.name != "help on a prompt" {
			t.Errorf("%s: nothing is found for %d questions", f.name, f.all.empty)
		}
		if plain := f.kinds["plain"]; plain != nil && plain.first < plain.asked*9/10 {
			t.Errorf("%s: %v of %d plain questions", f.name, *plain, plain.asked)
		}
	}
	if len(least) > 0 {
		t.Errorf("not asked: %v", least)
	}
}

func TestInventedSessionsHaveQuestionsOfEveryKind(t *testing.T) {
	t.Parallel()
	stories, err := readStories(inventedSessions)
	if err != nil {
		t.Fatal(err)
	}
	kinds, ids, projects := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, s := range stories {
		if ids[s.id] {
			t.Errorf("%s stands there twice", s.id)
		}
		ids[s.id], projects[s.project] = true, true
		if len(s.payloads("/work")) < 4 || strings.ContainsAny(strings.Join(s.steps, " "), "{}") && s.questions == nil {
			t.Errorf("%s of %s: %q", s.file, s.at, s.steps)
		}
		for _, q := range s.questions {
			if kinds[q.kind]++; !slices.Contains(questionKinds(), q.kind) || q.sentence == "" || q.keywords == "" {
				t.Errorf("%+v", q)
			}
		}
	}
	for _, kind := range questionKinds() {
		if kinds[kind] < 10 {
			t.Errorf("%d questions of kind %s", kinds[kind], kind)
		}
	}
	if len(stories) < 60 || len(projects) < 6 {
		t.Errorf("%d sessions of %d projects", len(stories), len(projects))
	}
}
