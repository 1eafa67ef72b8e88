package lazyjson

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"cairn/internal/fault"
	"cairn/internal/harness/harnesstest"
)

// smallShortener returns a shortener with limits small enough for readable tests.
func smallShortener() *shortener {
	return &shortener{half: 24, lateHalf: 16, nested: 200, outer: 400, most: 2000}
}

// shortened writes a text in parts of random length.
func shortened(s *shortener, input []byte, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	for len(input) > 0 {
		n := min(len(input), 1+random.IntN(40))
		s.write(input[:n])
		input = input[n:]
	}
	return s.out
}

// TestShortenedPayloads checks that shortened payloads are usable. They contain whole escapes and
// characters, both ends of a string, the first of many elements, and all members around them.
func TestShortenedPayloads(t *testing.T) {
	t.Parallel()
	many := func(part string) string { return strings.Repeat(part, 300) }
	for name, c := range map[string]struct{ in, want string }{
		"short":       {`{ "a" : [ 1 , -2.5e3, true,null , "x\"y" ] }`, `{"a":[1 ,-2.5e3,true,null ,"x\"y"]}`},
		"string":      {`{"a":"` + many("0123456789") + `","b":1}`, `{"a":"012345678901234567890123678901234567890123456789","b":1}`},
		"escapes":     {`{"a":"` + many(`\u00e9`) + `"}`, `{"a":"` + strings.Repeat(`\u00e9`, 8) + `"}`},
		"surrogates":  {`{"a":"x` + many(`\ud83d\ude00`) + `"}`, `{"a":"x\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00"}`},
		"quotes":      {`{"a":"-` + many(`\"`) + `"}`, `{"a":"-` + strings.Repeat(`\"`, 24) + `"}`},
		"characters":  {`{"a":"-` + many(`é`) + `"}`, `{"a":"-` + strings.Repeat(`é`, 24) + `"}`},
		"whitespace":  {`{` + many(" \n") + `"a"` + many("\t") + `:` + many(" ") + `1` + many(" ") + `}`, `{"a":1 }`},
		"number":      {`{"a":` + strings.Repeat("1", maxLiteral-2) + `e+5,"b":2}`, `{"a":` + strings.Repeat("1", maxLiteral-2) + `,"b":2}`},
		"array":       {`{"a":[1` + many(`,{"k":2}`) + `],"b":3}`, `{"a":[1` + strings.Repeat(`,{"k":2}`, 24) + `,{}],"b":3}`},
		"nested":      {`{"a":[[` + many(`"x",`) + `1],[2]],"b":[3],"c":{"d":4},"e":"5"}`, `{"a":[[` + strings.Repeat(`"x",`, 48) + `"x"]],"b":[],"c":{},"e":"5"}`},
		"members":     {`{"a":1` + many(`,"k":2`) + `}`, `{"a":1` + strings.Repeat(`,"k":2`, 66) + `}`},
		"late string": {`{"a":[0` + many(`,1`) + `],"b":"` + many("0123456789") + `"}`, `{"a":[0` + strings.Repeat(`,1`, 97) + `],"b":"01234567890123454567890123456789"}`},
	} {
		for seed := range uint64(20) {
			s := smallShortener()
			got := string(shortened(s, []byte(c.in), seed))
			if s.failed || got != c.want {
				t.Fatalf("%s: failed %t\n got %s\nwant %s", name, s.failed, got, c.want)
			}
		}
		if err := CheckPayload([]byte(c.want), 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzShorten checks that for any input, however it is split, the copy is limited and a valid
// payload remains valid.
func FuzzShorten(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `}`, `{"`, `{]`, `{"a":"\ud83d\ude00` + strings.Repeat(`\ud83d\ude00`, 30) + `"}`,
		strings.Repeat(`{"a":[`, 600), `{"a":` + strings.Repeat("[", 998) + strings.Repeat("]", 998) + `}`,
		`{"` + strings.Repeat("\xff\x80\x80\x80", 50), `{"a":"` + strings.Repeat("\x80", 99) + `","b":"` + strings.Repeat(`\\`, 99) + `"}`,
		`{"a":[` + strings.Repeat(`{"k":[1,{}]},`, 60) + `0],"b":-1e+5 , "c":{"d":[]}}`,
		`{"a":` + strings.Repeat("1", 63) + `.5e-7}`, strings.Repeat(`{} `, 900), strings.Repeat(`1 `, 3000), ByteOrderMark + `{"a":"` + "\x00" + `"}`,
		`{"a":"\u12"}`, `{"a":"\u1\"}`,
	} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, input []byte, seed uint64) {
		input = bytes.Clone(bytes.TrimPrefix(input, []byte(ByteOrderMark)))
		MaskNUL(input)
		s := smallShortener()
		out := shortened(s, input, seed)
		if limit := s.most + 3*s.half; len(out) > limit || len(s.tail) > 4*s.half || len(s.stack) > maxDepth {
			t.Fatalf("%d bytes, tail of %d, depth %d", len(out), len(s.tail), len(s.stack))
		}
		if CheckPayload(input, 0) != nil {
			return
		}
		if err := CheckPayload(bytes.Clone(out), 0); s.failed || err != nil {
			t.Fatalf("failed %t, %v: %s", s.failed, err, out)
		}
		if twice := shortened(smallShortener(), out, seed+1); len(twice) > len(out) {
			t.Fatalf("longer: %s, then %s", out, twice)
		}
	})
}

// TestAPayloadOverTheLimitThatIsNotJSONNamesTheLimit also checks that the input is read to its
// end.
func TestAPayloadOverTheLimitThatIsNotJSONNamesTheLimit(t *testing.T) {
	t.Parallel()
	if testing.Short() || harnesstest.Raced {
		t.Skip("reads payloads of 64 MiB")
	}
	for name, c := range map[string]struct{ head, part, end string }{
		"open string": {`{"`, "junk ", ``}, "junk": {`{"a":`, "junk ", ``}, "open": {`{"a":1`, `,"b":2`, ``},
		"array": {`[1`, `,2`, `]`}, "spaces": {``, " ", ``}, "trailing": {`{}`, " ", `{}`}, "deep": {`{"a":`, "[", ``},
		"mismatch": {`{"a":[`, `1,`, `1}]`},
	} {
		end := strings.NewReader("the end")
		_, err := ReadPayload(io.MultiReader(harnesstest.Huge(c.head, c.part, c.end), end))
		if !fault.HasCode(err, "payload_too_large") || !strings.Contains(fmt.Sprint(err), "64 MiB") || end.Len() > 0 {
			t.Errorf("%s: %v, %d bytes are not read", name, err, end.Len())
		}
	}
	_, err := ReadPayload(io.MultiReader(harnesstest.Huge(`{"a":"`, "x", ``), iotest.ErrReader(iotest.ErrTimeout)))
	if !fault.HasCode(err, "unreadable_payload") {
		t.Errorf("a reader that breaks behind the limit: %v", err)
	}
}
