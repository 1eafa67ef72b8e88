package citation

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxFile is the maximum size of a cited file in bytes.
	MaxFile = 8 << 20
	// MaxRead is the maximum number of bytes that one call reads from files.
	MaxRead = 128 << 20
)

// Cited is a citation with a hash of the text of its lines: their SHA-256 in hex, with
// line ends normalised, a dash, and a fingerprint in hex. The fingerprint finds the lines
// elsewhere in a file. An empty or invalid hash means that no text was stored.
type Cited struct {
	Citation
	Hash string
}

// lineHash is a parsed Cited.Hash.
type lineHash struct {
	sum   [sha256.Size]byte
	print uint64
}

func (k lineHash) String() string {
	return hex.EncodeToString(k.sum[:]) + "-" + strconv.FormatUint(k.print, 16)
}

func parseLineHash(hash string) (k lineHash, ok bool) {
	sum, print, _ := strings.Cut(hash, "-")
	if len(sum) != 2*sha256.Size {
		return lineHash{}, false
	}
	_, err1 := hex.Decode(k.sum[:], []byte(sum))
	var err2 error
	k.print, err2 = strconv.ParseUint(print, 16, 64)
	return k, err1 == nil && err2 == nil
}

// DriftResult reports whether a cited text is still in a working tree.
type DriftResult struct {
	Checked bool // false if there is no hash, or if the file cannot be read
	Drifted bool // the file or the cited text in it no longer exists
	// First and Last are the present lines of the cited text if it has moved, else zero.
	// If the file contains it several times, they are the lines nearest to the cited
	// ones.
	First, Last int
}

// Tree is the working tree in a folder. Paths that lead outside it, also through symbolic
// links, count as missing files.
type Tree struct{ root string }

// Open returns the working tree in a folder; ok is false if there is no such
// folder.
func Open(root string) (t Tree, ok bool) {
	info, err := os.Stat(root)
	return Tree{root}, root != "" && filepath.IsAbs(root) && err == nil && info.IsDir()
}

// HashLines hashes the present text of the cited lines. The result is in the order of the
// citations. The hash is empty for missing lines, for binary files, for files larger than
// MaxFile, and after MaxRead bytes were read. The error is that of ctx.
func (t Tree) HashLines(ctx context.Context, citations []Citation) ([]Cited, error) {
	out := make([]Cited, len(citations))
	for i, c := range citations {
		out[i].Citation = c
	}
	err := t.eachFile(ctx, out, func(f *file, _ fileState, i int) {
		if f != nil && out[i].Last <= len(f.prints) {
			c := &out[i]
			c.Hash = lineHash{f.sum(c.First, c.Last), f.print(c.First, c.Last)}.String()
		}
	})
	return out, err
}

// CheckDrift checks whether the working tree still contains the cited texts. The results
// are in the order of the citations. The error is that of ctx (contract records §7,
// "drift").
func (t Tree) CheckDrift(ctx context.Context, cited []Cited) ([]DriftResult, error) {
	out := make([]DriftResult, len(cited))
	err := t.eachFile(ctx, cited, func(f *file, state fileState, i int) {
		k, ok := parseLineHash(cited[i].Hash)
		switch {
		case !ok || state == unreadable:
		case f == nil:
			out[i] = DriftResult{Checked: true, Drifted: true}
		default:
			out[i] = f.checkDrift(cited[i].Citation, k)
		}
	})
	return out, err
}

// fileState is the reason why the lines of a file cannot be read.
type fileState uint8

const (
	present    fileState = iota
	absent               // missing, or not a text file of this tree
	unreadable           // over a limit, or temporarily unreadable
)

// eachFile reads every cited file once and calls seen for each of its citations, by
// index.
func (t Tree) eachFile(ctx context.Context, cited []Cited, seen func(f *file, state fileState, i int)) error {
	if len(cited) == 0 {
		return nil
	}
	order := make([]int, len(cited))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cited[a].Path, cited[b].Path) })
	root, err := os.OpenRoot(t.root)
	if err == nil {
		defer root.Close()
	}
	var f *file
	state, budget := unreadable, MaxRead
	for n, i := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if root != nil && (n == 0 || cited[order[n-1]].Path != cited[i].Path) {
			f, state = readFile(root, cited[i].Path, budget)
			if f != nil {
				budget -= len(f.data)
			}
		}
		seen(f, state, i)
	}
	return nil
}

// readFile reads a text file of a tree. It does not open pipes or devices.
func readFile(root *os.Root, path string, budget int) (*file, fileState) {
	name := filepath.FromSlash(path)
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, unreadable
	case err != nil || !info.Mode().IsRegular():
		return nil, absent
	case info.Size() > MaxFile || info.Size() > int64(budget):
		return nil, unreadable
	}
	opened, err := root.Open(name)
	if err != nil {
		return nil, unreadable
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, MaxFile+1))
	if err != nil || len(data) > MaxFile {
		return nil, unreadable
	}
	if bytes.IndexByte(data[:min(len(data), binaryHead)], 0) >= 0 {
		return nil, absent
	}
	return newFile(data), present
}

// binaryHead is the number of bytes that Git searches for a zero byte, which makes a file
// binary.
const binaryHead = 8000

// file is the content of a text file, split into lines.
type file struct {
	data   []byte
	ends   []int    // end offset of each line, without its line end
	starts []int    // start offset of each line
	prints []uint64 // sums of the lines' fingerprints, up to and including each line
	powers []uint64 // powers of radix, as far as needed
}

// The fingerprint of lines treats their hashes as digits of a number modulo a prime. So
// the fingerprints of all windows of a file cost one pass.
const (
	prime = 1<<61 - 1
	radix = 0x1f3d5b79a2c4e681 % prime
)

func newFile(data []byte) *file {
	f := &file{data: data, powers: []uint64{1}}
	sum := uint64(0)
	for at := 0; at < len(data); {
		end, next := len(data), len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end, next = at+i, at+i+1
		}
		end = at + len(bytes.TrimSuffix(data[at:end], []byte("\r")))
		h := sha256.Sum256(data[at:end])
		sum = (times(sum, radix) + binary.BigEndian.Uint64(h[:])%prime) % prime
		f.starts, f.ends, f.prints = append(f.starts, at), append(f.ends, end), append(f.prints, sum)
		at = next
	}
	return f
}

// times multiplies modulo prime.
func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	_, rest := bits.Div64(high, low, prime)
	return rest
}

// print returns the fingerprint of the lines first to last, counted from 1.
func (f *file) print(first, last int) uint64 {
	n := last - first + 1
	for len(f.powers) <= n {
		f.powers = append(f.powers, times(f.powers[len(f.powers)-1], radix))
	}
	before := uint64(0)
	if first > 1 {
		before = times(f.prints[first-2], f.powers[n])
	}
	return (f.prints[last-1] + prime - before) % prime
}

// sum returns the SHA-256 of the lines first to last, each ended by a line feed.
func (f *file) sum(first, last int) (sum [sha256.Size]byte) {
	h := sha256.New()
	for i := first - 1; i < last; i++ {
		h.Write(f.data[f.starts[i]:f.ends[i]])
		h.Write([]byte{'\n'})
	}
	h.Sum(sum[:0])
	return sum
}

// checkDrift searches for the hashed text at its lines, then at growing distance from
// them.
func (f *file) checkDrift(c Citation, k lineHash) DriftResult {
	n := c.Last - c.First + 1
	end := len(f.prints) - n + 1 // the last line at which the text can begin
	there := func(first int) bool {
		last := first + n - 1
		return 1 <= first && first <= end && f.print(first, last) == k.print && f.sum(first, last) == k.sum
	}
	if there(c.First) {
		return DriftResult{Checked: true}
	}
	for away := max(1, c.First-end); c.First-away >= 1 || c.First+away <= end; away++ {
		for _, first := range [...]int{c.First - away, c.First + away} {
			if there(first) {
				return DriftResult{Checked: true, First: first, Last: first + n - 1}
			}
		}
	}
	return DriftResult{Checked: true, Drifted: true}
}
