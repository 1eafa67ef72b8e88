package likely

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/words"
)

// WordSearch finds the rows that contain words of a prompt which only few rows contain.
type WordSearch struct {
	Project int64 // key
	Own     int   // 1 if the prompt itself is stored as a row, else 0
	size    int   // number of rows of the project, without the prompt's own
	words   []rareWord
	Half    context.Context  //nolint:containedctx // when it ends no more words are looked up; nil for never
	held    map[int64]uint64 // by row, a bit set of the words that it contains
}

// rareWord is a word of the prompt that few rows contain.
type rareWord struct {
	match  string
	rows   string // ids of the rows, separated by commas, including the prompt's own
	count  int    // number of these rows, without the prompt's own
	known  bool   // isRare is known
	isRare bool   // fewer than 1 % of the project's rows contain it
}

const (
	maxLookedUp       = 24     // words of a prompt that are looked up, the longest ones
	maxListed         = 500    // maximum number of rows in the store that contain a rare word
	maxSized          = 50_000 // limit for counting a project's rows; 1 % of more makes no difference
	minWordLetters    = 3
	selectProjectSize = `SELECT count(*) FROM (SELECT 1 FROM observation_rows WHERE project_key = ? LIMIT +?)`
	selectMatches     = `SELECT count(*), ifnull(group_concat(id), '')
FROM (SELECT rowid AS id FROM observations_fts WHERE observations_fts MATCH ? LIMIT +?)`
)

// rare reports whether n rows are fewer than 1 % of the project's rows.
func (s *WordSearch) rare(n int) bool { return 100*n < s.size }

// Find finds the rows that contain rare words of a prompt.
func (s *WordSearch) Find(ctx context.Context, tx *store.Tx, text string) error {
	if err := tx.Get(ctx, []any{&s.size}, selectProjectSize, s.Project, maxSized+1); err != nil {
		return err
	}
	s.size -= s.Own
	if err := s.count(ctx, tx, text); err != nil {
		return err
	}
	return s.list()
}

// count finds the words of the prompt that few rows contain, the rarest first. It stops when Half
// ends: on a slow machine, fewer words are better than no result.
func (s *WordSearch) count(ctx context.Context, tx *store.Tx, text string) error {
	for _, term := range promptWords(text) {
		if s.Half != nil && s.Half.Err() != nil {
			break
		}
		w := rareWord{match: words.Phrase(term...)}
		if err := tx.Get(ctx, []any{&w.count, &w.rows}, selectMatches, w.match, maxListed+2); err != nil {
			return err
		}
		if w.count -= s.Own; w.count > 0 && w.count <= maxListed {
			w.isRare = s.rare(w.count) // the project has at most that many of them
			w.known = w.isRare
			s.words = append(s.words, w)
		}
	}
	slices.SortStableFunc(s.words, func(a, b rareWord) int { return cmp.Compare(a.count, b.count) })
	return nil
}

// list records which words each row contains.
func (s *WordSearch) list() error {
	s.held = map[int64]uint64{}
	for i, w := range s.words {
		for id := range strings.SplitSeq(w.rows, ",") {
			n, err := strconv.ParseInt(id, 10, 64)
			if err != nil {
				return err
			}
			s.held[n] |= 1 << i
		}
	}
	return nil
}

// foundRow is a row with the weight of the words that it contains.
type foundRow struct {
	id     int64
	weight float64
}

// best returns the n rows whose words weigh most, ties newest first. A word weighs more the fewer
// rows contain it.
func (s *WordSearch) best(n int) []foundRow {
	weights := make([]float64, len(s.words))
	for i, w := range s.words {
		weights[i] = math.Log1p(float64(max(s.size, 0)) / float64(w.count))
	}
	found := make([]foundRow, 0, len(s.held))
	for id, held := range s.held {
		f := foundRow{id: id}
		for ; held != 0; held &= held - 1 {
			f.weight += weights[bits.TrailingZeros64(held)]
		}
		found = append(found, f)
	}
	slices.SortFunc(found, func(a, b foundRow) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.id, a.id))
	})
	return found[:min(n, len(found))]
}

// promptWords returns the distinct words of a prompt that are worth looking up, the longest first,
// at most 24. A word is a run of letters and digits. In scripts without spaces, each pair of
// neighbouring characters is a word. Short words and small numbers are left out, because they are
// too common.
func promptWords(text string) (found [][]words.Identifier) {
	seen := map[string]bool{}
	add := func(word string, ids ...words.Identifier) {
		if word = strings.ToLower(word); !seen[word] {
			seen[word] = true
			found = append(found, ids)
		}
	}
	all := words.Identifiers(text)
	for i, id := range all {
		first, size := utf8.DecodeRuneInString(id.Whole)
		switch {
		case words.IsIdeograph(first):
			if i+1 < len(all) && isIdeographic(all[i+1]) && strings.Contains(text, id.Whole+all[i+1].Whole) {
				add(id.Whole+all[i+1].Whole, id, all[i+1])
			}
		case utf8.RuneCountInString(id.Whole) < minWordLetters:
		case strings.Trim(id.Whole, "0123456789") != "" || len(id.Whole) > minWordLetters*size:
			add(id.Whole, id)
		}
	}
	slices.SortStableFunc(found, func(a, b []words.Identifier) int { return cmp.Compare(lengthOf(b), lengthOf(a)) })
	return found[:min(len(found), maxLookedUp)]
}

func isIdeographic(id words.Identifier) bool {
	first, _ := utf8.DecodeRuneInString(id.Whole)
	return words.IsIdeograph(first)
}

func lengthOf(ids []words.Identifier) (n int) {
	for _, id := range ids {
		n += len(id.Whole)
	}
	return n
}

// WordSet returns the words of a text in lower case, without common endings. Identifiers are
// split. Single characters and the most common English words are left out.
func WordSet(text string) map[string]bool {
	set := map[string]bool{}
	words.Each(text, func(_ string, parts []string) {
		for _, p := range parts {
			if w := strings.ToLower(p); len(w) > 1 && !isStopWord(w) {
				set[withoutEnding(w)] = true
			}
		}
	})
	return set
}

func isStopWord(w string) bool {
	const stopWords = " the an and or to of in is it that this for on with be we you can do not are as at by from if so" +
		" have has was will what when how there here but my our your they them its let lets please just also now" +
		" should would could which than then some all any into out up about "
	return strings.Contains(stopWords, " "+w+" ")
}

// withoutEnding removes a common English ending, so that most forms of a word become equal.
func withoutEnding(w string) string {
	for _, ending := range [...]string{"ings", "ing", "ies", "ed", "es", "s", "e", "y"} {
		if stem, ok := strings.CutSuffix(w, ending); ok && len(stem) >= 3 {
			return stem
		}
	}
	return w
}
