package codex

import (
	"bytes"
	"context"
	"io"

	"cairn/internal/harness"
	"cairn/internal/observation"
	"cairn/internal/regular"
)

// settled returns the calls with a final outcome in the last part of a session's transcript.
func settled(ctx context.Context, path, session string, latest bool) (events []observation.Event, err error) {
	if sessionOfRollout(path) != session {
		return nil, nil
	}
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	o := harness.TranscriptOptions{Path: path, Offset: max(0, info.Size()-harness.MaxSettled)}
	tail := make([]byte, info.Size()-o.Offset)
	n, err := f.ReadAt(tail, o.Offset)
	if err != nil && err != io.EOF {
		return nil, err
	}
	tail = tail[:n]
	begin := 0
	if latest {
		begin = max(0, bytes.LastIndex(tail, []byte(`"task_started"`)))
		begin = bytes.LastIndexByte(tail[:begin], '\n') + 1
	}
	if begin == 0 && o.Offset > 0 {
		begin = bytes.IndexByte(tail, '\n') + 1
	}
	tail, o.Offset = tail[begin:], o.Offset+int64(begin)
	if o.Offset > 0 {
		o.Head = io.NewSectionReader(f, 0, min(o.Offset, 1<<20))
	}
	_, err = readTranscript(ctx, bytes.NewReader(tail), o, func(e observation.Event) error {
		if e.Settled && e.Kind == observation.Tool {
			events = append(events, e)
		}
		return nil
	})
	return events, err
}
