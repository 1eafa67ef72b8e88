package lazyjson

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"cairn/internal/fault"
)

func TestReadPayloadReadsEverything(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, firstPiece - 1, firstPiece, firstPiece + 1, 3*firstPiece - 1, 3 * firstPiece, 2*maxPiece + 7} {
		want := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
		for name, r := range map[string]io.Reader{
			"at once": bytes.NewReader(want), "by halves": iotest.HalfReader(bytes.NewReader(want)),
			"with the end": iotest.DataErrReader(bytes.NewReader(want)),
		} {
			got, err := ReadPayload(r)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes %s: %d bytes, %v", size, name, len(got), err)
			}
		}
	}
}

func TestReadPayloadReportsABrokenReader(t *testing.T) {
	t.Parallel()
	broken := io.MultiReader(strings.NewReader("{"), iotest.ErrReader(iotest.ErrTimeout))
	if _, err := ReadPayload(broken); !fault.HasCode(err, "unreadable_payload") || !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("got %v", err)
	}
}
