package contents_test

import (
	"math"
	"regexp"
	"strconv"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/rules"
)

func FuzzLocalID(f *testing.F) {
	for _, s := range []string{"pending-1", "pending-0", "pending-9223372036854775807", "pending-9223372036854775808", "pending-01", "Pending-1", "pending-1 ", ""} {
		f.Add(s)
	}
	pattern := regexp.MustCompile(`^pending-[1-9][0-9]*$`)
	f.Fuzz(func(t *testing.T, text string) {
		key, err := contents.ParseLocalID(text)
		wanted := pattern.MatchString(text) && text[len(text)-1] != '\n'
		if wanted {
			_, tooLarge := strconv.ParseInt(text[len("pending-"):], 10, 64)
			wanted = tooLarge == nil
		}
		if (err == nil) != wanted {
			t.Fatalf("%q: %d, %v", text, key, err)
		}
		if err == nil && contents.LocalID(key) != text {
			t.Fatalf("%q comes back as %q", text, contents.LocalID(key))
		}
	})
}

func TestEveryTextThatIsNoLocalIDIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "pending-", "pending-0", "pending-01", "Pending-1", "pending--1", "pending-+1", " pending-1", "pending-1 ", "pending-1x", "pending-1.0",
		"pending-9223372036854775808", "pending-99999999999999999999", "pending-\u0661", "1", "context-1", rules.NewID(), "pending-1\n",
	} {
		_, err := contents.ParseLocalID(text)
		memorytest.WantError(t, text, err, 400, memory.CodeLocalID, `"field":"local_id"`)
	}
	for text, key := range map[string]int64{"pending-1": 1, "pending-10": 10, "pending-9223372036854775807": math.MaxInt64} {
		got, err := contents.ParseLocalID(text)
		if err != nil || got != key {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}
