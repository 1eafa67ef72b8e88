package harness

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/regular"
)

// maxSettled limits how many bytes of a transcript's end a hook reads. Earlier lines were read at
// the ends of earlier turns, or are read by the next import.
const maxSettled = 2 << 20

// Settled returns the calls in the last part of a transcript whose outcome is final (see
// observation.Event.Settled). They are imported events in the order of the file. For Cline, whose
// hooks only report calls, Settled returns all events.
//
// It reads at most the last 2 MiB, and 1 MiB at the beginning for facts about the whole file. The
// file must be a regular file with a name for a transcript of the session. For other names Settled
// returns no events. With latest it reads only the newest turn. The errors are those of reading.
func Settled(ctx context.Context, path, session string, latest bool) (events []observation.Event, err error) {
	if name, ok := strings.CutSuffix(filepath.Base(path), clineSuffix); ok && name == session {
		return readClineTurn(ctx, path, latest)
	}
	if path == "" || session == "" || sessionOfRollout(path) != session {
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
	o := TranscriptOptions{Path: path, Offset: max(0, info.Size()-maxSettled)}
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
	_, err = ReadTranscript(ctx, bytes.NewReader(tail), o, func(e observation.Event) error {
		if e.Settled && e.Kind == observation.Tool {
			events = append(events, e)
		}
		return nil
	})
	return events, err
}
