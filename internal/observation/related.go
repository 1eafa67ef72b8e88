package observation

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/store"
	"cairn/internal/words"
)

// What bounds the search for related rows. Each bound can only make it find less.
const (
	maxRelated     = 5
	maxLookedUp    = 24     // words of a prompt, the longest
	maxListed      = 500    // rows of the store that a rare word may be in
	maxSized       = 50_000 // rows of a project that are counted: 1 % of more makes no difference
	maxWeighed     = 1000   // matches that are looked up to tell which project they are of
	maxInspected   = 200    // rows that are looked at
	minWordLetters = 3
)

const (
	selectProjectSize = `SELECT count(*) FROM (SELECT 1 FROM observation_rows WHERE project_key = ? LIMIT +?)`

	selectContent = `SELECT content FROM observation_rows WHERE id = ?`

	// Where the last turn of a session begins: the prompt before the present one.
	selectLastTurn = `SELECT o.id FROM observation_rows o JOIN prompt_rows p ON p.id = o.prompt_id
WHERE o.session_key = ?1 AND o.obs_type = 'user_prompt' AND o.id < ?2 ORDER BY o.id DESC LIMIT 1`

	selectMatches = `SELECT count(*), ifnull(group_concat(id), '')
FROM (SELECT rowid AS id FROM observations_fts WHERE observations_fts MATCH ? LIMIT +?)`
)

// rareWord is a word of the prompt that few rows of the store hold.
type rareWord struct {
	match  string
	rows   string // their ids, separated by commas, the prompt's own among them
	count  int    // of those rows, without the prompt's own
	known  bool   // whether it is rare has been found out
	isRare bool   // in under 1 % of the project's rows
}

// wordSearch finds the rows of the store that hold words of a prompt that few do.
type wordSearch struct {
	project int64 // key
	own     int   // 1 if the prompt's own row is one of the store's
	size    int   // of the project, in rows, without the prompt's own
	words   []rareWord
	half    context.Context  //nolint:containedctx // when it ends no more words are looked up; nil for never
	held    map[int64]uint64 // by row, the words that it holds, one bit for each
}

// maxPromptTerms is how many words of a prompt are searched for: of more, those that say most.
const maxPromptTerms = 16

// related returns up to five rows of other sessions of the project that a search for the
// prompt finds, as excerpts around what matched, the best session first, of a file one.
// A row holds two words of the prompt that are no everyday words, or all there are. Rows
// that the session was told of, rows that only name a file, and a harness's own words are
// left out.
func (a *assistant) related(ctx context.Context, tx *store.Tx, prompt string) (out []contextRow, err error) {
	args := RecallArgs{Query: cutRunes(prompt, maxPromptText), Session: a.event.Session}
	r := a.journal.newRecalling(ctx, tx, &args, a.project.Key)
	r.cutTerms(maxPromptTerms)
	r.rowSessions = maxRelated
	ranked, err := r.rank()
	seen := map[string]bool{}
	for i, s := range ranked {
		if err != nil || len(out) == maxRelated || i == maxRelated {
			break
		}
		var items []RecalledItem
		items, err = r.items(s, 2*maxRelated)
		taken := 0
		for _, item := range items {
			if taken == 2 || taken == 1 && i > 0 || len(out) == maxRelated {
				break
			}
			subject := item.Excerpt
			if item.FilePath != nil {
				subject = *item.FilePath
			}
			if a.told[item.ID] || seen[subject] || !r.isHelp(&item) {
				continue
			}
			seen[subject] = true
			taken++
			out = append(out, contextRow{id: item.ID, line: fmt.Sprintf("| #%d | %s | %s | %s |", item.ID, ago(a.now, item.Timestamp), item.ObsType, cell(item.Excerpt, maxExcerpt))})
		}
	}
	return out, err
}

// maxPromptText is how many characters of a prompt are searched for.
const maxPromptText = 2000

// isHelp reports whether a row says something about the prompt.
func (r *recalling) isHelp(item *RecalledItem) bool {
	if isFileRow(item.ObsType) || strings.HasPrefix(item.ContentPreview, "This session is being continued") {
		return false
	}
	telling := 0
	for _, t := range r.terms {
		if !t.Common && !t.pair && t.rarity > 0 {
			telling++
		}
	}
	return item.telling >= min(2, max(telling, 1))
}

// isFileRow reports whether a row names a file and says nothing else.
func isFileRow(obsType string) bool {
	return obsType == typeRead || obsType == typeEdit || obsType == typeWrite
}

// cutTerms leaves the n words of a question that say most: everyday words and short ones
// go first.
func (r *recalling) cutTerms(n int) {
	slices.SortStableFunc(r.terms, func(a, b askedTerm) int {
		return cmp.Or(before(!a.pair, !b.pair), before(!a.Common, !b.Common), cmp.Compare(len(b.Word), len(a.Word)))
	})
	r.terms = r.terms[:min(n, len(r.terms))]
}

// lastTurn is where the turn before the present one began: at the prompt itself if
// it is the session's first.
func (a *assistant) lastTurn(ctx context.Context, tx *store.Tx) (since int64, err error) {
	since, err = lookUp(ctx, tx, selectLastTurn, a.session, a.own)
	return cmp.Or(since, a.own), err
}

// rare tells whether n rows are under 1 % of the project's.
func (s *wordSearch) rare(n int) bool { return 100*n < s.size }

// find looks the words of a prompt up.
func (s *wordSearch) find(ctx context.Context, tx *store.Tx, text string) error {
	if err := tx.Get(ctx, []any{&s.size}, selectProjectSize, s.project, maxSized+1); err != nil {
		return err
	}
	s.size -= s.own
	if err := s.count(ctx, tx, text); err != nil {
		return err
	}
	return s.list()
}

// count finds the words of the prompt that few rows hold, the rarest first. It takes
// half of the time at most: on a slow day fewer words are better than silence.
func (s *wordSearch) count(ctx context.Context, tx *store.Tx, text string) error {
	for _, term := range promptWords(text) {
		if s.half != nil && s.half.Err() != nil {
			break
		}
		w := rareWord{match: words.Phrase(term...)}
		if err := tx.Get(ctx, []any{&w.count, &w.rows}, selectMatches, w.match, maxListed+2); err != nil {
			return err
		}
		if w.count -= s.own; w.count > 0 && w.count <= maxListed {
			w.isRare = s.rare(w.count) // whatever part of them is the project's
			w.known = w.isRare
			s.words = append(s.words, w)
		}
	}
	slices.SortStableFunc(s.words, func(a, b rareWord) int { return cmp.Compare(a.count, b.count) })
	return nil
}

// list finds the rows that hold the words.
func (s *wordSearch) list() error {
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

// foundRow is a row with the weight of the words that it holds.
type foundRow struct {
	id     int64
	weight float64
}

// best are the n rows whose words weigh most, ties newest first. A word weighs the
// more the fewer rows hold it.
func (s *wordSearch) best(n int) []foundRow {
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

// countWords is how many words a prompt has; two characters of a script without
// spaces count as one.
func countWords(text string) int {
	n := 0
	for _, r := range text {
		if words.IsIdeograph(r) {
			n++
		}
	}
	return len(strings.Fields(text)) + n/2
}

// promptWords are the different words of a prompt that are worth looking up, the
// longest first, at most 24: runs of letters and digits, of scripts without spaces
// every two neighbours. Short words and small numbers say nothing.
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
