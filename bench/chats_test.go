package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/bench/workload"
)

func TestChatsTellHowManyQuestionsTheSearchOfMemoriesAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := workload.New(filepath.Join(dir, "projects"), 1)
	for n := range 3 {
		_, err := workload.WriteTranscript(filepath.Join(dir, "transcripts"), w.Session(n, time.Date(2026, 1, 5+n, 9, 0, 0, 0, time.UTC)), 60)
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := readChats(t.Context(), filepath.Join(dir, "transcripts"))
	if err != nil {
		t.Fatal(err)
	}
	var questions struct {
		Questions []chatQuestion `json:"questions"`
	}
	first := entries[0]
	questions.Questions = []chatQuestion{
		{Question: first.text, Keywords: first.text, Answers: []string{sessionUUID(first.session)}},
		{Question: first.text, Keywords: "zzyzx", Answers: []string{"another session"}},
	}
	text, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "questions.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"chats", filepath.Join(dir, "transcripts"), file}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"search_memories, sentence 2 50.0", "plain BM25, keywords 2 50.0", "3 sessions"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}
