package browse

import (
	"strings"

	"cairn/internal/observation"
	"cairn/internal/tooloutput"
)

// shareOutputs shortens the outputs of rows to equal shares if they exceed maxOutputs in total.
func shareOutputs(rows []observation.Observation) {
	total, n := 0, 0
	for i := range rows {
		if size := len(rows[i].Output); size > 0 {
			total, n = total+size, n+1
		}
	}
	if total <= maxOutputs {
		return
	}
	for i := range rows {
		rows[i].Output = shortDigest(rows[i].Output, maxOutputs/n)
	}
}

// shortDigest returns a digest of at most limit bytes, which must be 100 or more. The result is
// the beginning, a gap and the end. The end is twice as long as the beginning, because most
// tools print their summary there.
func shortDigest(digest string, limit int) string {
	if len(digest) <= limit {
		return digest
	}
	const gap = "\n" + tooloutput.Gap + "\n"
	limit -= len(gap)
	head, tail := limit/3, len(digest)-limit*2/3
	if i := strings.LastIndexByte(digest[:head], '\n'); i > 0 {
		head = i
	}
	if i := strings.IndexByte(digest[tail:], '\n'); i >= 0 && i < limit/3 {
		tail += i + 1
	}
	return strings.ToValidUTF8(digest[:head], "") + gap + strings.ToValidUTF8(digest[tail:], "")
}

// maxOutputs is the maximum total size of outputs that Get returns, in bytes. The outputs are
// sent to a model.
const maxOutputs = 16 << 10
