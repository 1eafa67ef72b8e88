package harnesses

import (
	"bytes"
	"context"
	"errors"
	"io"

	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// ReadTranscript reads a transcript of any harness (observations §12) and yields its events. It
// recognizes the harness by the content of the file, not by its path. The events are in the order
// of the file and ready to be recorded as imported. Prompts come before their calls. A call is
// yielded with its result, a turn's message when the turn is over or the file ends. ReadTranscript
// does not invent starts and ends of sessions; it only reports compactions. Subagents' calls and
// messages belong to the parent session and contain the agent's id.
//
// Unusable lines are counted and skipped, whatever is wrong with them. Reading the same bytes
// again yields the same events.
//
// An error of yield or ctx stops the reading and is returned unchanged. If r fails, the error is
// Unavailable, code unreadable_transcript. The report then covers the part that was read, but its
// Resume is the position where this reading began.
func ReadTranscript(ctx context.Context, r io.Reader, o harness.TranscriptOptions, yield func(observation.Event) error) (harness.TranscriptReport, error) {
	if err := ctx.Err(); err != nil {
		return harness.NewReport(o), err
	}
	head := o.Head
	if head == nil {
		head = r
	}
	writer, seen, err := recognise(head)
	if err != nil {
		return harness.NewReport(o), harness.Unreadable(err)
	}
	if o.Head == nil {
		r = io.MultiReader(bytes.NewReader(seen), r)
	} else {
		o.Head = bytes.NewReader(seen)
	}
	report, err := senderOf(observation.Event{Harness: writer}).Read(ctx, r, o, yield) // also if the writer is unknown
	report.Harness = writer
	return report, err
}

// recognise returns the harness that wrote a transcript, "" if unknown. It reads the beginning up
// to the first line that identifies the harness, and also returns the bytes that it has read.
func recognise(r io.Reader) (writer string, read []byte, err error) {
	const enough = 8 << 20
	var seen bytes.Buffer
	lines := harness.NewLineReader(io.TeeReader(io.LimitReader(r, enough), &seen), 0)
	check := lazyjson.NewChecker()
	for {
		l, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return documentWriter(seen.Bytes()), seen.Bytes(), nil
		}
		if err != nil {
			return "", nil, err
		}
		raw := bytes.Clone(lazyjson.Trimmed(l.Text))
		lazyjson.MaskNUL(raw)
		if !check.IsObject(raw) {
			continue
		}
		if writer := writerOf(raw); writer != "" {
			return writer, seen.Bytes(), nil
		}
	}
}

// writerOf returns the harness that writes such lines, "" if this line does not identify it.
func writerOf(line lazyjson.Value) string {
	for _, h := range All() {
		if h.Writes != nil && h.Writes(line) {
			return h.Name
		}
	}
	return ""
}

// documentWriter returns the harness that writes files with this beginning, "" if unknown. Such
// files are documents with many lines or one very long line.
func documentWriter(head []byte) string {
	for _, h := range All() {
		if h.WritesDocument != nil && h.WritesDocument(head) {
			return h.Name
		}
	}
	return ""
}
